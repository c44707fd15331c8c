// Bounds of all rows' outputs, from the products of their copy with inputs.
#pragma once

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

// All inputs of a call, ready for the rows, and zeros for inputs up to a multiple of INPUTS_AT_ONCE.
class Inputs {
  public:
    template <class T>
    Inputs(const Sketch& sketch, const T* X, std::size_t m, double rounding, int n_threads)
        : p_(m * sketch.width),
          digits_(2 * (m + INPUTS_AT_ONCE - 1) * sketch.width),
          h_(m * sketch.k),
          inputs_(m) {
        const std::size_t room = (m + INPUTS_AT_ONCE - 1) / INPUTS_AT_ONCE * INPUTS_AT_ONCE;
        std::fill_n(digits_.data() + 2 * m * sketch.width, 2 * (room - m) * sketch.width, std::int8_t{0});
        in_parallel(m == 1 ? 1 : n_threads, m, [&](std::size_t i) {
            Scratch<double> z(2 * sketch.d);
            inputs_[i] = input_of(sketch, X + i * sketch.d, p_.data() + i * sketch.width,
                                  digits_.data() + 2 * i * sketch.width, h_.data() + i * sketch.k, z.data(),
                                  z.data() + sketch.d, rounding);
        });
    }
    const Input* data() const { return inputs_.data(); }
    const std::int8_t* digits() const { return digits_.data(); }  // (room, 2, width)

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

// What a bound of the rows from j on is made of; rows from s on have the numbers of the last.
struct Parts {
    Doubles sum, sizes, unknown, offset;  // <a q, p> + <G, h>, the sizes of its terms, Q E + R N, b - t
};

// Of the rows from j on, given the integer products I = <q, p>.
SPARSACT_INLINE Parts parts_of(const Sketch& sketch, std::size_t j, const Input& input, Doubles I) {
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
    return {sum, sizes, of(sketch.Q) * input.E + of(sketch.R) * input.N, of(sketch.offset)};
}

// By how much U and L are to be moved apart.
SPARSACT_INLINE Doubles slack(const Parts& parts, const Input& input, double relative, double least) {
    return relative * (input.b * (parts.sizes + parts.unknown) + size_of(parts.offset)) + least;
}

SPARSACT_INLINE Doubles upper(const Parts& parts, const Input& input, Doubles slack) {
    return input.b * (parts.sum + parts.unknown) + parts.offset + slack;
}
SPARSACT_INLINE Doubles lower(const Parts& parts, const Input& input, Doubles slack) {
    return input.b * (parts.sum - parts.unknown) + parts.offset - slack;
}

template <class F>
void for_every_part_by_rows(const Sketch& sketch, const Input* inputs, std::size_t m, std::size_t tile,
                            std::size_t last, F put) {
    const Products& products = screen_products();
    for (; tile < last; ++tile) {
        const std::size_t begin = tile * ROWS_OF_A_TILE, end = std::min(begin + ROWS_OF_A_TILE, sketch.s);
        for (std::size_t first = 0; first < m; first += INPUTS_AT_ONCE) {
            const Input* some = inputs + first;
            const std::size_t count = std::min(INPUTS_AT_ONCE, m - first);
            for (std::size_t j = begin; j < end; j += ROWS_OF_A_STEP) {
                const std::uint8_t* rows[ROWS_OF_A_STEP];
                for (std::size_t r = 0; r < ROWS_OF_A_STEP; ++r)
                    rows[r] = sketch.rows + std::min(j + r, end - 1) * sketch.width;
                Sums sums[INPUTS_AT_ONCE];
                products.of_rows[count - 1](rows, sketch.width, some, sums);
                for (std::size_t c = 0; c < count; ++c) {
                    double I[ROWS_OF_A_STEP];
                    for (std::size_t r = 0; r < ROWS_OF_A_STEP; ++r)
                        I[r] = products.scale * sums[c].high[r] + sums[c].low[r] -
                               128.0 * static_cast<double>(some[c].sum);
                    for (std::size_t r = 0; r < ROWS_OF_A_STEP && j + r < end; r += WIDTH)
                        put(first + c, j + r, parts_of(sketch, j + r, some[c], load<Doubles>(I + r)));
                }
            }
        }
    }
}

inline std::size_t tiles_of(const Sketch& sketch) { return (sketch.s + ROWS_OF_A_TILE - 1) / ROWS_OF_A_TILE; }

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
