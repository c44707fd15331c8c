// What the bounds of all units need of one input: its digits, and the sizes of what they leave out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "scratch.hpp"
#include "screen.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr double LARGEST_INTEGER = 32639;  // 256 * 127 + 127: what two balanced digits hold
constexpr double UP = 1 + 0x1p-30;         // covers the rounding of a sum of 2^16 terms, and of its root

// sum of f(i, lanes of T doubles from i on), in the order of SCREEN_PARTIALS; f returns a vector of doubles.
template <class F, class G>
SPARSACT_INLINE double ordered_sum(std::size_t n, F vector, G scalar) {
    constexpr std::size_t width = lanes<double>, vectors = SCREEN_PARTIALS / width;
    Vector<double> sums[vectors] = {};
    std::size_t i = 0;
    for (; i + SCREEN_PARTIALS <= n; i += SCREEN_PARTIALS)
        for (std::size_t v = 0; v < vectors; ++v) sums[v] += vector(i + v * width);
    double partial[SCREEN_PARTIALS];
    for (std::size_t v = 0; v < vectors; ++v) store(partial + v * width, sums[v]);
    for (std::size_t p = 0; i < n; ++i, ++p) partial[p] += scalar(i);
    for (std::size_t half = SCREEN_PARTIALS / 2; half; half /= 2)
        for (std::size_t p = 0; p < half; ++p) partial[p] += partial[p + half];
    return partial[0];
}

SPARSACT_INLINE double dot(const double* x, const double* y, std::size_t n) {
    return ordered_sum(
        n, [&](std::size_t i) { return load<Vector<double>>(x + i) * load<Vector<double>>(y + i); },
        [&](std::size_t i) { return x[i] * y[i]; });
}

inline double norm(const double* x, std::size_t n) { return std::sqrt(dot(x, x, n)); }

struct Input {
    const std::int8_t *high, *low;  // (width,) digits of p = rint(z), z = x / (b c): p = 256 high + low
    std::int64_t sum;               // of p
    const double* h;                // (k,): M z
    double b, E, N;                 // |z - p| <= E; |<r', z>| <= R N
};

// The input whose row of digits, (2, width), and of h, (k,), are to be filled; z and rest (d,) are scratch.
template <class T>
Input input_of(const Sketch& sketch, const T* x, std::int8_t* digits, double* h, double* z, double* rest) {
    const std::size_t d = sketch.d;
    double largest = 0;
    bool finite = true;
    for (std::size_t i = 0; i < d; ++i) {
        z[i] = static_cast<double>(widened(x[i])) * sketch.columns[i];
        finite &= std::isfinite(z[i]);
        largest = std::max(largest, std::fabs(z[i]));
    }
    Input input{digits, digits + sketch.width, 0, h, 1, 0, 0};
    std::fill_n(digits, 2 * sketch.width, std::int8_t{0});
    std::fill_n(h, sketch.k, 0.0);
    if (!finite) input.N = std::numeric_limits<double>::quiet_NaN();  // and so is every bound
    if (!finite || largest == 0) return input;

    int exponent;
    std::frexp(largest, &exponent);
    input.b = std::ldexp(1.0, exponent - 15);
    if (largest > LARGEST_INTEGER * input.b) input.b *= 2;
    const double shrink = 1 / input.b;
    std::int8_t *high = digits, *low = digits + sketch.width;
    for (std::size_t i = 0; i < d; ++i) {
        z[i] *= shrink;
        const double p = std::nearbyint(z[i]);
        const int integer = static_cast<int>(p), upper = (integer + 128) >> 8;
        rest[i] = z[i] - p;
        high[i] = static_cast<std::int8_t>(upper);
        low[i] = static_cast<std::int8_t>(integer - 256 * upper);
        input.sum += integer;
    }
    input.E = UP * norm(rest, d);

    const double size = norm(z, d);
    double spread = 0;
    for (std::size_t t = 0; t < sketch.k; ++t) {
        const float* direction = sketch.directions + t * d;
        for (std::size_t i = 0; i < d; ++i) rest[i] = direction[i];
        h[t] = dot(z, rest, d);
        spread += std::fabs(h[t]);
    }
    std::copy_n(z, d, rest);
    for (std::size_t t = 0; t < sketch.k; ++t) {
        const float* direction = sketch.directions + t * d;
        for (std::size_t i = 0; i < d; ++i) rest[i] -= h[t] * static_cast<double>(direction[i]);
    }
    input.N = UP * (norm(rest, d) + sketch.leak * spread + 0x1p-18 * size);
    return input;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
