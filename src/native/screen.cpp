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

using Doubles = Vector<double>;

constexpr std::size_t ROWS_OF_A_TILE = 32;  // that stay in the cache while inputs pass by
constexpr std::size_t WIDTH = lanes<double>;
constexpr std::size_t TERMS = 8;   // along directions, that are added side by side
constexpr double SLACK = 0x1p-45;  // of the rounding of a bound: fewer than 2^8 operations

// All inputs of a call, ready for the rows.
template <class T>
class Inputs {
  public:
    Inputs(const Sketch& sketch, const T* X, std::size_t m, int n_threads)
        : p_(m * sketch.width), digits_(2 * m * sketch.width), h_(m * sketch.k), inputs_(m) {
        in_parallel(n_threads, m, [&](std::size_t i) {
            Scratch<double> z(2 * sketch.d);
            inputs_[i] = input_of(sketch, X + i * sketch.d, p_.data() + i * sketch.width,
                                  digits_.data() + 2 * i * sketch.width, h_.data() + i * sketch.k, z.data(),
                                  z.data() + sketch.d);
        });
    }
    const Input* data() const { return inputs_.data(); }

  private:
    Scratch<std::int16_t> p_;
    Scratch<std::int8_t> digits_;
    Scratch<double> h_;
    std::vector<Input> inputs_;
};

SPARSACT_INLINE Doubles size_of(Doubles x) {
#ifdef SPARSACT_VECTORS
    return reinterpret_cast<Doubles>(reinterpret_cast<Vector<std::int64_t>>(x) & (INT64_MAX));
#else
    return std::fabs(x);
#endif
}

struct Terms {
    Doubles sum, sizes;
};

// TERMS sums of the terms G_t h_t of a row, and of their sizes, the second half added to the first and so on
// until they are WIDTH.
SPARSACT_INLINE Terms terms_along(const float* along, const double* h, std::size_t k) {
    constexpr std::size_t vectors = TERMS / WIDTH;
    Doubles sums[vectors] = {}, sizes[vectors] = {};
    const auto add = [&](const float* g, const double* with) {
        for (std::size_t v = 0; v < vectors; ++v) {
            const Doubles term = load_doubles(g + v * WIDTH) * load_doubles(with + v * WIDTH);
            sums[v] += term;
            sizes[v] += size_of(term);
        }
    };
    std::size_t t = 0;
    for (; t + TERMS <= k; t += TERMS) add(along + t, h + t);
    if (t < k) {
        float g[TERMS] = {};
        double with[TERMS] = {};
        std::copy(along + t, along + k, g);
        std::copy(h + t, h + k, with);
        add(g, with);
    }
    for (std::size_t half = vectors / 2; half; half /= 2)
        for (std::size_t v = 0; v < half; ++v) sums[v] += sums[v + half], sizes[v] += sizes[v + half];
    return {sums[0], sizes[0]};
}

// v[0] + v[1] + ..., lane by lane: the second half is added to the first, and so on.
SPARSACT_INLINE Doubles halved(Doubles (&v)[WIDTH]) {
    for (std::size_t half = WIDTH / 2; half; half /= 2)
        for (std::size_t p = 0; p < half; ++p) v[p] += v[p + half];
    return v[0];
}

// U + slack of the rows from j on, or their estimates, given the integer products I = <q, p>. Rows from s on
// have the value of the last.
template <bool bound>
SPARSACT_INLINE Doubles values(const Sketch& sketch, std::size_t j, const Input& input, Doubles I) {
    const auto row = [&](std::size_t r) { return std::min(j + r, sketch.s - 1); };
    const auto of = [&](const double* numbers) {
        if (j + WIDTH <= sketch.s) return load<Doubles>(numbers + j);
        double some[WIDTH];
        for (std::size_t r = 0; r < WIDTH; ++r) some[r] = numbers[row(r)];
        return load<Doubles>(some);
    };
    Doubles sum = of(sketch.a) * I, sizes = size_of(sum);
    if (sketch.k) {
        Doubles sums[WIDTH], lengths[WIDTH];
        for (std::size_t r = 0; r < WIDTH; ++r) {
            const Terms terms = terms_along(sketch.along + row(r) * sketch.k, input.h, sketch.k);
            sums[r] = terms.sum;
            lengths[r] = terms.sizes;
        }
        transpose<double>(sums);
        transpose<double>(lengths);
        sum += halved(sums);
        sizes += halved(lengths);
    }
    if constexpr (bound) {
        const Doubles unknown = of(sketch.Q) * input.E + of(sketch.R) * input.N;
        sum += unknown;
        sizes += unknown;
    } else {
        sum += 0 * input.N;  // NaN of an input that is not finite
    }
    const Doubles offset = of(sketch.offset), upper = input.b * sum + offset;
    if constexpr (!bound) return upper;
    return upper + SLACK * (input.b * sizes + size_of(offset));
}

// Calls put(i, j, value) for every input and row; rows are read once for all inputs.
template <bool bound, class T, class F>
void for_every_value(const Sketch& sketch, const T* X, std::size_t m, int n_threads, F put) {
    if (m == 0 || sketch.s == 0) return;
    const int threads = available_threads(n_threads);
    const Inputs<T> inputs(sketch, X, m, m == 1 ? 1 : threads);
    const Products& products = screen_products();
    const std::size_t tiles = (sketch.s + ROWS_OF_A_TILE - 1) / ROWS_OF_A_TILE;
    in_parallel(threads, tiles, [&](std::size_t tile) {
        const std::size_t begin = tile * ROWS_OF_A_TILE, end = std::min(begin + ROWS_OF_A_TILE, sketch.s);
        for (std::size_t first = 0; first < m; first += INPUTS_AT_ONCE) {
            const Input* some = inputs.data() + first;
            const std::size_t count = std::min(INPUTS_AT_ONCE, m - first);
            for (std::size_t j = begin; j < end; j += ROWS_AT_ONCE) {
                const std::uint8_t* rows[ROWS_AT_ONCE];
                for (std::size_t r = 0; r < ROWS_AT_ONCE; ++r)
                    rows[r] = sketch.rows + std::min(j + r, end - 1) * sketch.width;
                Sums sums[INPUTS_AT_ONCE];
                products.of_rows[count - 1](rows, sketch.width, some, sums);
                for (std::size_t c = 0; c < count; ++c) {
                    double I[ROWS_AT_ONCE], found[WIDTH];
                    for (std::size_t r = 0; r < ROWS_AT_ONCE; ++r)
                        I[r] = products.scale * sums[c].high[r] + sums[c].low[r] -
                               128.0 * static_cast<double>(some[c].sum);
                    for (std::size_t r = 0; r < ROWS_AT_ONCE && j + r < end; r += WIDTH) {
                        store(found, values<bound>(sketch, j + r, some[c], load<Doubles>(I + r)));
                        for (std::size_t l = 0; l < WIDTH && j + r + l < end; ++l)
                            put(first + c, j + r + l, found[l]);
                    }
                }
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
SPARSACT_INSTANTIATE(Float16)

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
