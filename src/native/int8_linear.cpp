#include "int8_linear.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "amx.hpp"
#include "int8_codes.hpp"
#include "int8_ways.hpp"
#include "packed_rows.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr double ADDED_ALONE = 4;  // what a row costs that is added for one input, in products of packed rows

}  // namespace

void int8_codes(const float* X, std::size_t m, std::size_t n, std::size_t width, std::uint8_t* codes,
                Quantization* by) {
    constexpr float to_integer = 12582912;  // 1.5 * 2^23: what is added to it is rounded to even
    for (std::size_t i = 0; i < m; ++i, X += n, codes += width) {
        float least, largest;
        find_range(X, n, &least, &largest);
        if (!(static_cast<double>(largest) - least < std::numeric_limits<double>::infinity())) {
            by[i] = {std::numeric_limits<float>::quiet_NaN(), 0};
            std::memset(codes, 0, n);
            continue;
        }
        by[i] = quantization_of(least, largest);
        const float inverse = 1 / by[i].scale;
        const float zero_point = static_cast<float>(by[i].zero_point);
        for (std::size_t k = 0; k < n; ++k) {
            const float rounded = (std::fma(X[k], inverse, zero_point) + to_integer) - to_integer;
            codes[k] = static_cast<std::uint8_t>(std::max(static_cast<std::int32_t>(rounded), 0));
        }
    }
}

namespace {

// Inputs as codes, row by row filled up to `width`.
struct Codes {
    Codes(const float* X, std::size_t m, std::size_t n, std::size_t width)
        : data(m * width), by(m), width(width) {
        for (std::size_t i = 0; i < m; ++i) std::memset(data.data() + i * width + n, 0, width - n);
        int8_codes(X, m, n, width, data.data(), by.data());
    }
    const std::uint8_t* row(std::size_t i) const { return data.data() + i * width; }

    Scratch<std::uint8_t> data;
    std::vector<Quantization> by;  // of each row
    std::size_t width;
};

struct RowAddresses {
    RowAddresses(const Int8Weights& W, const std::size_t* rows) {
        for (int r = 0; r < AT_ONCE; ++r) at[r] = W.rows + rows[r] * W.width;
    }
    const std::int8_t* at[AT_ONCE];
};

// Tiles of weights that are read side by side.
struct Int8Taken {
    Int8Taken(const Int8Weights& W, std::size_t count)
        : W(W), from{W.rows, W.t, W.width, W.tiled}, space(count * from.space()) {}
    void take(int n, std::size_t j) {
        at[n] = from.tile(j, space.data() + n * from.space());
        prefetch(W.scale, j + TILE), prefetch(W.bias, j + TILE), prefetch(W.sums, j + TILE);
    }

    const Int8Weights& W;
    TileSource<std::int8_t> from;
    Scratch<std::int8_t> space;
    const std::int8_t* at[std::max(TILES_OF_ONE, TILES_OF_MANY)];
};

// Outputs of all rows, which are read once for all inputs.
template <int tiles, std::size_t together, class Product>
void every_row(const Int8Weights& W, const Codes& x, std::size_t m, float* out, int n_threads,
               Product product) {
    multiply_tiles<tiles, together>(
        W.t, m, n_threads, [&] { return Int8Taken(W, tiles); },
        [&](const Int8Taken& taken, std::size_t first, std::size_t inputs, std::int32_t* sums) {
            product(inputs, x.row(first), W.width, taken.at, sums);
        },
        [&](std::size_t i, std::size_t j, std::int32_t* sums) {
            const std::size_t count = std::min(TILE, W.t - j);
            for (std::size_t p = 0; p < count; ++p) sums[p] -= x.by[i].zero_point * W.sums[j + p];
            put_outputs(sums, x.by[i].scale, W.scale + j, W.bias + j, count, out + i * W.t + j);
        });
}

// Outputs of the rows that a mask names.
void masked_rows(const Int8Weights& W, const std::uint8_t* x, Quantization by, const std::uint8_t* mask,
                 float* out, int n_threads) {
    std::fill_n(out, W.t, 0 * by.scale);  // all outputs are NaN if an input is not finite
    const Int8Products& products = int8_products();
    multiply_masked_rows(
        mask, W.t, n_threads,
        [&](const std::size_t* rows, std::int32_t* sums) {
            products.of_rows(x, RowAddresses(W, rows).at, W.width, sums);
        },
        [&](std::size_t j) {
            for (std::size_t k = 0; k < W.width; k += INT8_BLOCK) prefetch(W.rows + j * W.width, k);
        },
        [&](std::size_t j, std::int32_t sum) {
            sum -= by.zero_point * W.sums[j];
            put_outputs(&sum, by.scale, W.scale + j, W.bias + j, 1, out + j);
        });
}

// Rows of a matrix, each with a factor in 0..127.
struct Weighted {
    std::vector<const std::int8_t*> rows;
    std::vector<std::uint8_t> factors;
    void add(const std::int8_t* row, int factor) {
        rows.push_back(row);
        factors.push_back(static_cast<std::uint8_t>(factor));
    }
    void clear() { rows.clear(), factors.clear(); }
};

// Adds the rows begin, ..., end - 1 to sums (width,).
void add_weighted(const Weighted& some, std::size_t begin, std::size_t end, std::size_t width,
                  std::int32_t* sums) {
    const Int8Products& products = int8_products();
    for (std::size_t first = begin; first < end; first += ADDED) {
        if (first + 2 * ADDED <= end) {
            const std::int8_t* const* at = some.rows.data() + first;
            products.add_rows(some.factors.data() + first, at, width, sums, at + ADDED);
            continue;
        }
        const std::int8_t *rows[ADDED], *next[ADDED];
        std::uint8_t factors[ADDED] = {};
        for (std::size_t r = 0; r < ADDED; ++r) {
            rows[r] = some.rows[std::min(first + r, end - 1)];
            next[r] = some.rows[std::min(first + r + ADDED, end - 1)];
            if (first + r < end) factors[r] = some.factors[first + r];
        }
        products.add_rows(factors, rows, width, sums, next);
    }
}

// sums (width,) = sum of the rows of `plus` minus sum of the rows of `minus`.
void sum_of_rows(const Weighted& plus, const Weighted& minus, std::size_t width, std::int32_t* sums,
                 int n_threads) {
    std::fill_n(sums, width, 0);
    add_in_threads(std::max(plus.rows.size(), minus.rows.size()), width, sums, n_threads,
                   [&](std::size_t task, std::size_t tasks, std::int32_t* own) {
                       const auto add = [&](const Weighted& some) {
                           const std::size_t n = some.rows.size();
                           add_weighted(some, task * n / tasks, (task + 1) * n / tasks, width, own);
                       };
                       add(minus);
                       if (!minus.rows.empty())
                           for (std::size_t k = 0; k < width; ++k) own[k] = -own[k];
                       add(plus);
                   });
    int8_products().in_order(sums, width);
}

// How many codes are not that of 0; used (t,) is not 0 for units that have one.
std::int64_t find_others(const Codes& h, std::size_t m, std::size_t t, std::uint8_t* used) {
    constexpr std::uint64_t ones = 0x0101010101010101u;
    std::uint64_t zeros = 0;
    std::int64_t count = 0;
    std::memset(used, 0, t);
    const auto look = [&](std::size_t i, std::size_t first, std::size_t size) {
        std::uint64_t eight = zeros, before = 0;
        std::memcpy(&eight, h.row(i) + first, size);
        std::memcpy(&before, used + first, size);
        eight ^= zeros;
        before |= eight;
        std::memcpy(used + first, &before, size);
        eight = ((((eight & 127 * ones) + 127 * ones) | eight) >> 7) & ones;  // of the bytes that are not 0
        count += static_cast<std::int64_t>(eight * ones >> 56);
    };
    for (std::size_t i = 0; i < m; ++i) {
        zeros = ones * static_cast<std::uint64_t>(h.by[i].zero_point);
        for (std::size_t first = 0; first + 8 <= t; first += 8) look(i, first, 8);
        if (t % 8) look(i, t - t % 8, t % 8);
    }
    return count;
}

// Outputs from the rows of `units`, the only ones with codes that are not that of 0, for all inputs together.
void packed_units(const Int8Weights& V, const Codes& h, std::size_t m, const std::vector<std::size_t>& units,
                  float* out, int n_threads) {
    const Int8Products& products = int8_products();
    const bool centred =
        std::all_of(h.by.begin(), h.by.end(), [](Quantization by) { return !by.zero_point; });
    const std::size_t count = (units.size() + 3) / 4 * 4;
    const std::size_t inputs = m + !centred;  // a last one of ones gives the sums of the weights
    Scratch<std::uint8_t> x(inputs * count);
    std::memset(x.data() + m * count, 1, (inputs - m) * count);
    for (std::size_t i = 0; i < inputs; ++i) {
        std::uint8_t* to = x.data() + i * count;
        std::memset(to + units.size(), 0, count - units.size());
        if (i < m && units.size() == V.t)
            std::memcpy(to, h.row(i), V.t);
        else if (i < m)
            for (std::size_t p = 0; p < units.size(); ++p) to[p] = h.row(i)[units[p]];
    }
    std::vector<const std::int8_t*> rows(count, V.rows);
    for (std::size_t p = 0; p < units.size(); ++p) rows[p] = V.rows + units[p] * V.width;
    multiply_packed<4, std::int8_t>(
        V.width, x.data(), inputs, count, n_threads, products.add_packed,
        [&](std::size_t column, std::size_t blocks, std::size_t first, std::size_t groups,
            std::int8_t* packed) {
            products.pack_columns(rows.data() + first, groups, column, blocks, packed);
        },
        [&](std::size_t column, std::int32_t* sums) {
            const std::int32_t* all = sums + m * INT8_BLOCK;
            for (std::size_t i = 0; i < m; ++i) {
                std::int32_t* row = sums + i * INT8_BLOCK;
                if (!centred)
                    for (std::size_t k = 0; k < INT8_BLOCK; ++k) row[k] -= h.by[i].zero_point * all[k];
                products.in_order(row, INT8_BLOCK);
                put_outputs(row, h.by[i].scale, V.scale + column, V.bias + column,
                            std::min(INT8_BLOCK, V.n - column), out + i * V.n + column);
            }
        });
}

}  // namespace

void int8_rows(const Int8Weights& W, const float* X, const std::uint8_t* mask, std::size_t m, float* out,
               int n_threads) {
    if (m == 0 || W.t == 0) return;
    TileSource<std::int8_t>{W.rows, W.t, W.width, W.tiled}.ask();
    const Codes x(X, m, W.n, W.width);
    const Int8Products& products = int8_products();
    const auto by_vectors = [](const Int8Products::OfTiles* of_inputs) {
        return [=](std::size_t inputs, auto... rest) { of_inputs[inputs - 1](rest...); };
    };
    if (!mask && m == 1)
        every_row<TILES_OF_ONE, 1>(W, x, m, out, n_threads, by_vectors(&products.of_one_input));
    else if (!mask && amx_pays(m))
        every_row<TILES_OF_ONE, AMX_INPUTS>(W, x, m, out, n_threads, amx_products);
    else if (!mask)
        every_row<TILES_OF_MANY, TOGETHER>(W, x, m, out, n_threads, by_vectors(products.of_inputs));
    else
        for (std::size_t i = 0; i < m; ++i)
            masked_rows(W, x.row(i), x.by[i], mask + i * W.t, out + i * W.t, n_threads);
}

std::int64_t int8_columns(const Int8Weights& V, const float* H, std::size_t m, float* out, int n_threads) {
    if (m == 0) return 0;
    const Codes h(H, m, V.t, V.t);
    if (m > 1) {
        Scratch<std::uint8_t> used(V.t);
        const std::int64_t entries = find_others(h, m, V.t, used.data());
        std::vector<std::size_t> units;
        for_each_other(used.data(), V.t, 0, [&](std::size_t j) { units.push_back(j); });
        if (static_cast<double>(entries) * ADDED_ALONE > static_cast<double>(units.size() * (m + 1))) {
            packed_units(V, h, m, units, out, n_threads);
            return entries;
        }
    }
    std::int64_t entries = 0;
    Scratch<std::int32_t> sums(V.width);
    Weighted plus, minus;
    for (std::size_t i = 0; i < m; ++i) {
        plus.clear(), minus.clear();
        const std::int32_t zero_point = h.by[i].zero_point;
        for_each_other(h.row(i), V.t, static_cast<std::uint8_t>(zero_point), [&](std::size_t j) {
            const int factor = h.row(i)[j] - zero_point;
            (factor > 0 ? plus : minus).add(V.rows + j * V.width, std::abs(factor));
        });
        entries += static_cast<std::int64_t>(plus.rows.size() + minus.rows.size());
        sum_of_rows(plus, minus, V.width, sums.data(), n_threads);
        put_outputs(sums.data(), h.by[i].scale, V.scale, V.bias, V.n, out + i * V.n);
    }
    return entries;
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include <vector>

#include "bind_int8.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<Int8Linear>(module, "Int8Linear")
        .def(nb::init<Array<const std::int8_t, 2>, Int8Linear::Numbers, Int8Linear::Numbers, std::size_t,
                      bool>(),
             nb::arg("rows"), nb::arg("scale"), nb::arg("bias"), nb::arg("n"), nb::arg("tiled"))
        .def("rows", &Int8Linear::rows)
        .def("rows_at", &Int8Linear::rows_at)
        .def("columns", &Int8Linear::columns);
    module.def(
        "quantize_inputs",
        [](Array<const float, 2> X, Array<std::uint8_t, 2> codes, Array<float, 1> scale,
           Array<std::int32_t, 1> zero_point) {
            const std::size_t m = X.shape(0), n = X.shape(1);
            nb::gil_scoped_release unlocked;
            std::vector<Quantization> by(m);
            SPARSACT_DISPATCH(int8_codes, X.data(), m, n, n, codes.data(), by.data());
            for (std::size_t i = 0; i < m; ++i) {
                scale.data()[i] = by[i].scale;
                zero_point.data()[i] = by[i].zero_point;
            }
        },
        nb::arg("X").noconvert(), nb::arg("codes").noconvert(), nb::arg("scale").noconvert(),
        nb::arg("zero_point").noconvert());
}

}  // namespace sparsact

#endif
