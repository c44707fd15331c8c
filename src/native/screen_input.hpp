// What the bounds of all units need of one input: its digits, and the sizes of what they leave out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "scratch.hpp"
#include "screen.hpp"
#include "vector.hpp"

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr double LARGEST_INTEGER = 32639;  // 256 * 127 + 127: what two balanced digits hold
constexpr double UP = 1 + 0x1p-30;         // covers the rounding of a sum of 2^16 terms, and of its root

// The sum of scalar(i), i < n, in the order of SCREEN_PARTIALS; vector(i) holds a vector of them from i on.
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

// Numbers, as doubles.
SPARSACT_INLINE Vector<double> load_doubles(const double* from) { return load<Vector<double>>(from); }
SPARSACT_INLINE Vector<double> load_doubles(const float* from) {
#if defined(SPARSACT_ISA_avx512)
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(SPARSACT_ISA_avx2)
    return _mm256_cvtps_pd(_mm_loadu_ps(from));  // compilers convert generic vectors in halves
#elif defined(SPARSACT_VECTORS)
    return __builtin_convertvector(load<Vector<float, widest_bytes / 2>>(from), Vector<double>);
#else
    return *from;
#endif
}

template <class T>
SPARSACT_INLINE double dot(const double* x, const T* y, std::size_t n) {
    return ordered_sum(
        n, [&](std::size_t i) { return load_doubles(x + i) * load_doubles(y + i); },
        [&](std::size_t i) { return x[i] * static_cast<double>(y[i]); });
}

inline double norm(const double* x, std::size_t n) { return std::sqrt(dot(x, x, n)); }

// rest (d,) = z - M^T h, each number by itself.
inline void subtract_directions(const Sketch& sketch, const double* z, const double* h, double* rest) {
    constexpr std::size_t width = lanes<double>;
    const std::size_t d = sketch.d;
    std::size_t i = 0;
    for (; i + width <= d; i += width) {
        auto left = load_doubles(z + i);
        for (std::size_t t = 0; t < sketch.k; ++t) left -= h[t] * load_doubles(sketch.directions + t * d + i);
        store(rest + i, left);
    }
    for (; i < d; ++i) {
        rest[i] = z[i];
        for (std::size_t t = 0; t < sketch.k; ++t)
            rest[i] -= h[t] * static_cast<double>(sketch.directions[t * d + i]);
    }
}

struct Input {
    const std::int16_t* p;          // (width,): rint(z), z = x / (b c)
    const std::int8_t *high, *low;  // (width,) digits: p = 256 high + low
    std::int64_t sum;               // of p
    const double* h;                // (k,): M z
    double b, E, N;                 // |z - p| <= E; |<r', z>| <= R N
    double size;                    // |z| <= size
};

// The input whose p (width,), digits (2, width) and h (k,) are to be filled; z and rest (d,) are scratch. N
// grows by `rounding` times the size.
template <class T>
Input input_of(const Sketch& sketch, const T* x, std::int16_t* p, std::int8_t* digits, double* h, double* z,
               double* rest, double rounding) {
    const std::size_t d = sketch.d;
    std::uint64_t most = 0;  // in bits, which are in the order of the sizes, with infinity and NaN above them
    for (std::size_t i = 0; i < d; ++i) {
        z[i] = static_cast<double>(widened(x[i])) * sketch.columns[i];
        const double size = std::fabs(z[i]);
        std::uint64_t bits;
        std::memcpy(&bits, &size, sizeof bits);
        most = std::max(most, bits);
    }
    double largest;
    std::memcpy(&largest, &most, sizeof largest);
    const double none = 0 * largest;  // a NaN makes every bound one
    Input input{p, digits, digits + sketch.width, 0, h, 1, 0, none, none};
    std::fill_n(p, sketch.width, std::int16_t{0});
    std::fill_n(digits, 2 * sketch.width, std::int8_t{0});
    std::fill_n(h, sketch.k, 0.0);
    if (!std::isfinite(largest) || largest == 0) return input;

    int exponent;
    std::frexp(largest, &exponent);
    input.b = std::ldexp(1.0, exponent - 15);
    if (largest > LARGEST_INTEGER * input.b) input.b *= 2;
    const double shrink = 1 / input.b;
    std::int8_t *high = digits, *low = digits + sketch.width;
    for (std::size_t i = 0; i < d; ++i) {
        z[i] *= shrink;
        const double nearest = std::nearbyint(z[i]);
        const int integer = static_cast<int>(nearest), upper = (integer + 128) >> 8;
        rest[i] = z[i] - nearest;
        p[i] = static_cast<std::int16_t>(integer);
        high[i] = static_cast<std::int8_t>(upper);
        low[i] = static_cast<std::int8_t>(integer - 256 * upper);
        input.sum += integer;
    }
    input.E = UP * norm(rest, d);

    const double size = norm(z, d);
    double spread = 0;
    for (std::size_t t = 0; t < sketch.k; ++t) {
        h[t] = dot(z, sketch.directions + t * d, d);
        spread += std::fabs(h[t]);
    }
    subtract_directions(sketch, z, h, rest);
    input.N = UP * (norm(rest, d) + sketch.leak * spread + (0x1p-18 + rounding) * size);
    input.size = UP * size;
    return input;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
