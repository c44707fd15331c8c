#include "int4_linear.hpp"

#ifdef SPARSACT_ISA

#include <cstring>
#include <limits>

#include "amx.hpp"
#include "int4_products.hpp"
#include "int8_codes.hpp"

namespace sparsact::SPARSACT_ISA {

void int4_codes(const float* X, std::size_t m, std::size_t n, std::int8_t* codes, float* scales) {
    constexpr float to_integer = 12582912;  // 1.5 * 2^23: what is added to it is rounded to even
    constexpr float smallest = 0x1p-121f;   // 127 over less may overflow: all codes are 0
    for (std::size_t i = 0; i < m; ++i) {
        float least, largest;
        find_range(X + i * n, n, &least, &largest);
        const float size = std::max(largest, -least);
        scales[i] = size - size == 0 ? size / 127 : std::numeric_limits<float>::quiet_NaN();
        const float inverse = size >= smallest ? 127 / size : 0;
        if (std::isnan(scales[i]) || inverse == 0)
            std::fill_n(codes + i * n, n, std::int8_t{0});
        else
            for (std::size_t k = 0; k < n; ++k)
                codes[i * n + k] =
                    static_cast<std::int8_t>((X[i * n + k] * inverse + to_integer) - to_integer);
    }
}

namespace {

constexpr double ADDED_ALONE =
                     3.4,  // what a row costs that is added for one input, in products of packed rows
    UNPACKED = 25;         // and what packing one costs

// Codes (m, 2 * width) of all inputs, filled up with zeros, their scales, and what the sums of each group
// begin with.
class Int4Inputs {
  public:
    Int4Inputs(const float* X, std::size_t m, std::size_t n, std::size_t width)
        : codes_(m * 2 * width), offsets_(m * (width / 16)), scales_(m), width_(width) {
        const Int8Products& products = int8_products();
        for (std::size_t i = 0; i < m; ++i) {
            std::int8_t* codes = codes_.data() + i * 2 * width;
            std::memset(codes + n, 0, 2 * width - n);
            int4_codes(X + i * n, 1, n, codes, scales_.data() + i);
            for (std::size_t g = 0; g < width / 16; ++g)
                offsets_[i * (width / 16) + g] = products.int4_offset(codes + INT4_GROUP * g);
        }
    }
    const std::int8_t* codes(std::size_t i) const { return codes_.data() + i * 2 * width_; }
    const std::uint32_t* offsets(std::size_t i) const { return offsets_.data() + i * (width_ / 16); }
    float scale(std::size_t i) const { return scales_[i]; }

  private:
    Scratch<std::int8_t> codes_;
    Scratch<std::uint32_t> offsets_;
    Scratch<float> scales_;
    std::size_t width_;
};

// An input as `int4_row_products` reads it.
class ArrangedCodes {
  public:
    ArrangedCodes(const std::int8_t* codes, std::size_t width) : codes_(2 * width), offsets_(width / 2) {
        arrange_codes(codes, width, codes_.data(), offsets_.data());
    }
    Int4Input input() const { return {codes_.data(), offsets_.data()}; }

  private:
    Scratch<std::int8_t> codes_;
    Scratch<std::int16_t> offsets_;
};

// 16-bit codes (m, width) of the named columns, or of all; padded with zeros.
class WideCodes {
  public:
    WideCodes(const std::int8_t* codes, std::size_t m, std::size_t n, const std::vector<std::size_t>* columns,
              std::size_t width)
        : data_(m * width) {
        for (std::size_t i = 0; i < m; ++i, codes += n) {
            const std::size_t count = columns ? columns->size() : n;
            std::int16_t* to = data_.data() + i * width;
            for (std::size_t k = 0; k < count; ++k) to[k] = codes[columns ? (*columns)[k] : k];
            std::fill(to + count, to + width, std::int16_t{0});
        }
    }
    const std::int16_t* data() const { return data_.data(); }

  private:
    Scratch<std::int16_t> data_;
};

using AddPacked = void (*)(const std::int16_t*, std::size_t, const std::int16_t*, std::size_t, std::int32_t*);
constexpr AddPacked int4_add[MAX_INPUTS] = {int4_add_packed<1>, int4_add_packed<2>, int4_add_packed<3>,
                                            int4_add_packed<4>};

// Tiles of weights that are read side by side, and of multipliers.
struct Int4Taken {
    Int4Taken(const Int4Weights& W, std::size_t count)
        : W(W), from{W.rows, W.t, W.width, W.tiled}, space(count * from.space()), of_rows(count * W.width) {}
    void take(int n, std::size_t j) {
        at[n] = from.tile(j, space.data() + n * from.space());
        multipliers[n] = W.multipliers + j * (W.width / 16);
        prefetch(W.scale, j + TILE), prefetch(W.bias, j + TILE);
        if (W.tiled) return;
        std::int8_t* to = of_rows.data() + n * W.width;
        multipliers[n] = to;
        for (std::size_t g = 0; g < W.width / 16; ++g)
            for (std::size_t r = 0; r < TILE; ++r) *to++ = W.multipliers_of(std::min(j + r, W.t - 1))[g];
    }

    const Int4Weights& W;
    TileSource<std::uint8_t> from;
    Scratch<std::uint8_t> space;
    Scratch<std::int8_t> of_rows;
    const std::uint8_t* at[TILES_OF_ONE];
    const std::int8_t* multipliers[TILES_OF_ONE];
};

template <int tiles, std::size_t together, class Product>
void every_row(const Int4Weights& W, const Int4Inputs& x, std::size_t m, float* out, int n_threads,
               Product product) {
    multiply_tiles<tiles, together>(
        W.t, m, n_threads, [&] { return Int4Taken(W, tiles); },
        [&](const Int4Taken& taken, std::size_t first, std::size_t inputs, std::int32_t* sums) {
            product(first, inputs, taken, sums);
        },
        [&](std::size_t i, std::size_t j, const std::int32_t* sums) {
            put_outputs(sums, x.scale(i), W.scale + j, W.bias + j, std::min(TILE, W.t - j),
                        out + i * W.t + j);
        });
}

// Outputs from the rows of `units`, the only ones with codes that are not 0, for all inputs together.
void packed_units(const Int4Weights& V, const std::int8_t* codes, const float* scales, std::size_t m,
                  std::vector<std::size_t>& units, float* out, int n_threads) {
    const std::size_t count = (units.size() + 1) / 2 * 2;
    const WideCodes h(codes, m, V.t, &units, count);
    units.resize(count);
    multiply_packed<2, std::int16_t>(
        V.n, h.data(), m, count, n_threads, int4_add,
        [&](std::size_t column, std::size_t blocks, std::size_t first, std::size_t groups,
            std::int16_t* packed) {
            int4_pack_columns(V, units.data() + first, groups, column, blocks, packed);
        },
        [&](std::size_t column, const std::int32_t* sums) {
            for (std::size_t i = 0; i < m; ++i)
                put_outputs(sums + i * INT8_BLOCK, scales[i], V.scale + column, V.bias + column,
                            std::min(INT8_BLOCK, V.n - column), out + i * V.n + column);
        });
}

// Adds the rows begin, ..., end - 1 of those listed to sums.
void add_listed(const Int4Weights& V, const std::vector<std::size_t>& rows, const std::int8_t* codes,
                std::size_t begin, std::size_t end, std::int32_t* sums) {
    for (std::size_t first = begin; first < end; first += INT4_ADDED) {
        const std::uint8_t *at[INT4_ADDED], *next[INT4_ADDED];
        const std::int8_t* multipliers[INT4_ADDED];
        std::int8_t factors[INT4_ADDED] = {};
        for (std::size_t r = 0; r < INT4_ADDED; ++r) {
            const std::size_t j = rows[std::min(first + r, end - 1)];
            at[r] = V.row(j), multipliers[r] = V.multipliers_of(j);
            const std::size_t after = rows[std::min(first + r + INT4_ADDED, end - 1)];
            next[r] = V.row(after);
            for (std::size_t k = 0; k < V.width / 16; k += 64) prefetch(V.multipliers_of(after), k);
            if (first + r < end) factors[r] = codes[j];
        }
        int4_add_rows(factors, at, multipliers, V.width, sums, next);
    }
}

}  // namespace

void int4_rows(const Int4Weights& W, const float* X, const std::uint8_t* mask, std::size_t m, float* out,
               int n_threads) {
    if (m == 0 || W.t == 0) return;
    TileSource<std::uint8_t>{W.rows, W.t, W.width, W.tiled}.ask();
    const Int4Inputs x(X, m, W.n, W.width);
    const Int8Products& products = int8_products();
    const std::size_t groups = W.width / 16;
    const auto by_vectors = [&](const Int8Products::OfInt4Tiles* of_inputs) {
        return [&x, groups, of_inputs](std::size_t first, std::size_t inputs, const Int4Taken& taken,
                                       std::int32_t* sums) {
            of_inputs[inputs - 1](x.codes(first), x.offsets(first), groups, taken.at, taken.multipliers,
                                  sums);
        };
    };
    if (!mask && m == 1)
        every_row<TILES_OF_ONE, 1>(W, x, m, out, n_threads, by_vectors(&products.int4_of_one_input));
    else if (!mask && amx_pays(m, WORTH_INT4_AMX))
        every_row<1, AMX_INPUTS>(
            W, x, m, out, n_threads,
            [&](std::size_t first, std::size_t inputs, const Int4Taken& taken, std::int32_t* sums) {
                int4_amx_products(inputs, x.codes(first), groups, taken.at[0], taken.multipliers[0], sums);
            });
    else if (!mask)
        every_row<1, TOGETHER>(W, x, m, out, n_threads, by_vectors(products.int4_of_inputs));
    for (std::size_t i = 0; mask && i < m; ++i) {
        const ArrangedCodes arranged(x.codes(i), W.width);
        std::fill_n(out + i * W.t, W.t, x.scale(i) - x.scale(i));  // NaN where an input is not finite
        multiply_masked_rows(
            mask + i * W.t, W.t, n_threads,
            [&](const std::size_t* rows, std::int32_t* sums) {
                const std::uint8_t* at[AT_ONCE];
                const std::int8_t* multipliers[AT_ONCE];
                for (int r = 0; r < AT_ONCE; ++r)
                    at[r] = W.row(rows[r]), multipliers[r] = W.multipliers_of(rows[r]);
                int4_row_products(arranged.input(), at, multipliers, W.width, sums);
            },
            [&](std::size_t j) {
                for (std::size_t k = 0; k < W.width; k += INT4_BLOCK) prefetch(W.row(j), k);
            },
            [&](std::size_t j, std::int32_t sum) {
                put_outputs(&sum, x.scale(i), W.scale + j, W.bias + j, 1, out + i * W.t + j);
            });
    }
}

std::int64_t int4_columns(const Int4Weights& V, const float* H, std::size_t m, float* out, int n_threads) {
    Scratch<std::int8_t> all(m * V.t);
    Scratch<float> scales(m);
    int4_codes(H, m, V.t, all.data(), scales.data());
    std::int64_t entries = 0;
    std::vector<std::size_t> units;
    std::vector<std::uint8_t> used(V.t);
    for (std::size_t i = 0; m > 1 && i < m; ++i)
        for_each_other(all.data() + i * V.t, V.t, 0, [&](std::size_t j) { ++entries, used[j] = 1; });
    for_each_other(used.data(), V.t, 0, [&](std::size_t j) { units.push_back(j); });
    if (static_cast<double>(entries) * ADDED_ALONE >
        static_cast<double>(units.size()) * (static_cast<double>(m) + UNPACKED)) {
        packed_units(V, all.data(), scales.data(), m, units, out, n_threads);
        return entries;
    }
    Scratch<std::int32_t> sums(2 * V.width), ordered(2 * V.width);
    entries = 0;
    for (std::size_t i = 0; i < m; ++i) {
        const std::int8_t* codes = all.data() + i * V.t;
        std::vector<std::size_t> rows;
        for_each_other(codes, V.t, 0, [&](std::size_t j) { rows.push_back(j); });
        entries += static_cast<std::int64_t>(rows.size());
        std::fill_n(sums.data(), 2 * V.width, 0);
        add_in_threads(rows.size(), 2 * V.width, sums.data(), n_threads,
                       [&](std::size_t task, std::size_t tasks, std::int32_t* own) {
                           add_listed(V, rows, codes, task * rows.size() / tasks,
                                      (task + 1) * rows.size() / tasks, own);
                       });
        int4_in_order(sums.data(), V.width, ordered.data());
        put_outputs(ordered.data(), scales[i], V.scale, V.bias, V.n, out + i * V.n);
    }
    return entries;
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {
namespace {

// Holds the weights; inputs and outputs come as addresses, so that a call converts no array.
class Int4Linear {
  public:
    using Numbers = Array<const float, 1>;

    // `rows` (t, width), or tiles (tiles, 16 * width) of the rows of as many outputs as there are scales, and
    // multipliers in the same order.
    Int4Linear(Array<const std::uint8_t, 2> rows, Array<const std::int8_t, 2> multipliers, Numbers scale,
               Numbers bias, std::size_t n, bool tiled)
        : rows_(rows),
          multipliers_(multipliers),
          scale_(scale),
          bias_(bias),
          weights_{rows.data(),
                   multipliers.data(),
                   scale.data(),
                   bias.data(),
                   tiled ? scale.shape(0) : rows.shape(0),
                   n,
                   tiled ? rows.shape(1) / 16 : rows.shape(1),
                   tiled} {}

    void rows(std::size_t x, std::size_t m, std::size_t out, int n_threads) const {
        run_rows(x, 0, m, out, n_threads);
    }
    void rows_at(std::size_t x, std::size_t mask, std::size_t m, std::size_t out, int n_threads) const {
        check_rows();
        run_rows(x, mask, m, out, n_threads);
    }
    std::int64_t columns(std::size_t h, std::size_t m, std::size_t out, int n_threads) const {
        check_rows();
        nb::gil_scoped_release unlocked;
        return SPARSACT_DISPATCH(int4_columns, weights_, reinterpret_cast<const float*>(h), m,
                                 reinterpret_cast<float*>(out), n_threads);
    }

  private:
    void check_rows() const {
        if (weights_.tiled)
            throw std::invalid_argument("tiles are read whole: pass rows to read some of them");
    }
    void run_rows(std::size_t x, std::size_t mask, std::size_t m, std::size_t out, int n_threads) const {
        nb::gil_scoped_release unlocked;
        SPARSACT_DISPATCH(int4_rows, weights_, reinterpret_cast<const float*>(x),
                          reinterpret_cast<const std::uint8_t*>(mask), m, reinterpret_cast<float*>(out),
                          n_threads);
    }

    Array<const std::uint8_t, 2> rows_;  // these keep the memory alive
    Array<const std::int8_t, 2> multipliers_;
    Numbers scale_, bias_;
    Int4Weights weights_;
};

}  // namespace

SPARSACT_BINDINGS(module) {
    nb::class_<Int4Linear>(module, "Int4Linear")
        .def(nb::init<Array<const std::uint8_t, 2>, Array<const std::int8_t, 2>, Int4Linear::Numbers,
                      Int4Linear::Numbers, std::size_t, bool>(),
             nb::arg("rows"), nb::arg("multipliers"), nb::arg("scale"), nb::arg("bias"), nb::arg("n"),
             nb::arg("tiled"))
        .def("rows", &Int4Linear::rows)
        .def("rows_at", &Int4Linear::rows_at)
        .def("columns", &Int4Linear::columns);
    module.def(
        "quantize_rows",
        [](Array<const float, 2> X, Array<std::int8_t, 2> codes, Array<float, 1> scales) {
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(int4_codes, X.data(), X.shape(0), X.shape(1), codes.data(), scales.data());
        },
        nb::arg("X").noconvert(), nb::arg("codes").noconvert(), nb::arg("scales").noconvert());
}

}  // namespace sparsact

#endif
