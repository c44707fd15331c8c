#include "screen.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cmath>
#include <vector>

#include "screen_input.hpp"
#include "screen_products.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t ROWS_AT_ONCE = 32;  // that stay in the cache while inputs pass by
constexpr std::size_t TERMS = 8;          // along directions, that are added side by side
constexpr double SLACK = 0x1p-45;         // of the rounding of a bound: fewer than 2^8 operations

// All inputs of a call, ready for the rows.
template <class T>
class Inputs {
  public:
    Inputs(const Sketch& sketch, const T* X, std::size_t m, int n_threads)
        : digits_(2 * m * sketch.width), h_(m * sketch.k), inputs_(m) {
        in_parallel(n_threads, m, [&](std::size_t i) {
            Scratch<double> z(2 * sketch.d);
            inputs_[i] = input_of(sketch, X + i * sketch.d, digits_.data() + 2 * i * sketch.width,
                                  h_.data() + i * sketch.k, z.data(), z.data() + sketch.d);
        });
    }
    const Input* data() const { return inputs_.data(); }

  private:
    Scratch<std::int8_t> digits_;
    Scratch<double> h_;
    std::vector<Input> inputs_;
};

struct Terms {
    double sum, sizes;
};

// The sum of G_t h_t, and that of their sizes: TERMS sums side by side, which are then added in halves.
SPARSACT_INLINE Terms terms_along(const float* along, const double* h, std::size_t k) {
    if (k == 0) return {0, 0};
    constexpr std::size_t width = lanes<double>, vectors = TERMS / width;
    Vector<double> sums[vectors] = {}, sizes[vectors] = {};
    std::size_t t = 0;
    for (; t + TERMS <= k; t += TERMS)
        for (std::size_t v = 0; v < vectors; ++v) {
            const auto term = load_doubles(along + t + v * width) * load_doubles(h + t + v * width);
            sums[v] += term;
            sizes[v] += term < 0 ? -term : term;
        }
    double sum[TERMS], size[TERMS];
    for (std::size_t v = 0; v < vectors; ++v)
        store(sum + v * width, sums[v]), store(size + v * width, sizes[v]);
    for (std::size_t p = 0; t < k; ++t, ++p) {
        const double term = static_cast<double>(along[t]) * h[t];
        sum[p] += term;
        size[p] += std::fabs(term);
    }
    for (std::size_t half = TERMS / 2; half; half /= 2)
        for (std::size_t p = 0; p < half; ++p) sum[p] += sum[p + half], size[p] += size[p + half];
    return {sum[0], size[0]};
}

// U + slack of row j, or the estimate, given the integer product I = <q, p>.
template <bool bound>
SPARSACT_INLINE double value(const Sketch& sketch, std::size_t j, const Input& input, std::int64_t I) {
    double sum = sketch.a[j] * static_cast<double>(I), sizes = std::fabs(sum);
    const Terms terms = terms_along(sketch.along + j * sketch.k, input.h, sketch.k);
    sum += terms.sum;
    sizes += terms.sizes;
    if constexpr (bound) {
        const double unknown = sketch.Q[j] * input.E + sketch.R[j] * input.N;
        sum += unknown;
        sizes += unknown;
    } else {
        sum += 0 * input.N;  // NaN of an input that is not finite
    }
    const double upper = input.b * sum + sketch.offset[j];
    if constexpr (!bound) return upper;
    return upper + SLACK * (input.b * sizes + std::fabs(sketch.offset[j]));
}

// Calls put(i, j, value) for every input and row; rows are read once for all inputs.
template <bool bound, class T, class F>
void for_every_value(const Sketch& sketch, const T* X, std::size_t m, int n_threads, F put) {
    if (m == 0 || sketch.s == 0) return;
    const int threads = available_threads(n_threads);
    const Inputs<T> inputs(sketch, X, m, m == 1 ? 1 : threads);
    const std::size_t tiles = (sketch.s + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    in_parallel(threads, tiles, [&](std::size_t tile) {
        const std::size_t begin = tile * ROWS_AT_ONCE, end = std::min(begin + ROWS_AT_ONCE, sketch.s);
        for (std::size_t first = 0; first < m; first += INPUTS_AT_ONCE) {
            const Input* some = inputs.data() + first;
            const std::size_t count = std::min(INPUTS_AT_ONCE, m - first);
            const Products products = products_for(count);
            for (std::size_t j = begin; j < end; ++j) {
                std::int64_t I[INPUTS_AT_ONCE];
                products(sketch.rows + j * sketch.width, sketch.width, some, I);
                for (std::size_t c = 0; c < count; ++c)
                    put(first + c, j, value<bound>(sketch, j, some[c], I[c] - 128 * some[c].sum));
            }
        }
    });
}

}  // namespace

template <class T>
void screen_survivors(const Sketch& sketch, const T* X, std::size_t m, std::uint8_t* survivors,
                      std::int64_t* counts, int n_threads) {
    for_every_value<true>(sketch, X, m, n_threads, [&](std::size_t i, std::size_t j, double bound) {
        survivors[i * sketch.s + j] = !(bound <= 0);  // a NaN proves nothing
    });
    for (std::size_t i = 0; i < m; ++i)
        counts[i] = std::count(survivors + i * sketch.s, survivors + (i + 1) * sketch.s, std::uint8_t{1});
}

template <class T>
void screen_bounds(const Sketch& sketch, const T* X, std::size_t m, double* bounds, int n_threads) {
    for_every_value<true>(sketch, X, m, n_threads, [&](std::size_t i, std::size_t j, double bound) {
        bounds[i * sketch.s + j] = bound;
    });
}

template <class T>
void screen_estimates(const Sketch& sketch, const T* X, std::size_t m, float* estimates, int n_threads) {
    for_every_value<false>(sketch, X, m, n_threads, [&](std::size_t i, std::size_t j, double estimate) {
        estimates[i * sketch.s + j] = static_cast<float>(estimate);
    });
}

#define SPARSACT_INSTANTIATE(T)                                                                              \
    template void screen_survivors(const Sketch&, const T*, std::size_t, std::uint8_t*, std::int64_t*, int); \
    template void screen_bounds(const Sketch&, const T*, std::size_t, double*, int);                         \
    template void screen_estimates(const Sketch&, const T*, std::size_t, float*, int);
SPARSACT_INSTANTIATE(float)
SPARSACT_INSTANTIATE(Bfloat16)

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind_screen.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<Screen>(module, "Screen")
        .def(nb::init<Array<const std::uint8_t, 2>, Screen::Numbers, Screen::Numbers, Screen::Numbers,
                      Screen::Numbers, Screen::Floats, Screen::Numbers, Screen::Floats, double>(),
             nb::arg("rows"), nb::arg("a"), nb::arg("Q"), nb::arg("R"), nb::arg("offset"), nb::arg("along"),
             nb::arg("columns"), nb::arg("directions"), nb::arg("leak"))
        .def("survivors", &Screen::survivors)
        .def("bounds", &Screen::bounds)
        .def("estimates", &Screen::estimates);
}

}  // namespace sparsact

#endif
