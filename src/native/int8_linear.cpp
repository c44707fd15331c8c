#include "int8_linear.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "int8_codes.hpp"
#include "row_streams.hpp"
#include "scratch.hpp"
#include "vector.hpp"

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr int ADDED = 8;  // rows that are added up at once

struct Int8Products {
    void (*of_rows[MAX_INPUTS])(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                                std::int32_t* sums);
    void (*add_rows)(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                     std::int32_t* sums, const std::int8_t* const* next);
    void (*in_order)(std::int32_t* sums, std::size_t width);
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA

#define INT8_WAY in_16_bits
#define INT8_TARGET
#include "int8_products.hpp"
#undef INT8_WAY
#undef INT8_TARGET

#ifdef SPARSACT_ISA_avx512
#define INT8_WAY in_32_bits
#define INT8_TARGET __attribute__((target("avx512vnni")))
#define INT8_VNNI
#include "int8_products.hpp"
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

inline const Int8Products& int8_products() {
#ifdef SPARSACT_ISA_avx512
    if (__builtin_cpu_supports("avx512vnni")) return in_32_bits::products;
#endif
    return in_16_bits::products;
}

}  // namespace

bool int8_codes(const float* X, std::size_t m, std::size_t n, std::size_t width, std::uint8_t* codes,
                Quantization* by) {
    constexpr float to_integer = 12582912;  // 1.5 * 2^23: what is added to it is rounded to even
    float least, largest;
    find_range(X, m * n, &least, &largest);
    if (!(largest - least < std::numeric_limits<float>::infinity())) return false;
    *by = quantization_of(least, largest);
    const float inverse = 1 / by->scale;
    const float zero_point = static_cast<float>(by->zero_point);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t k = 0; k < n; ++k) {
            const float rounded = (std::fma(X[i * n + k], inverse, zero_point) + to_integer) - to_integer;
            codes[i * width + k] = static_cast<std::uint8_t>(std::max(static_cast<std::int32_t>(rounded), 0));
        }
    return true;
}

namespace {

// Inputs as codes, row by row filled up to `width`.
struct Codes {
    Codes(const float* X, std::size_t m, std::size_t n, std::size_t width) : data(m * width), width(width) {
        for (std::size_t i = 0; i < m; ++i) std::memset(data.data() + i * width + n, 0, width - n);
        finite = int8_codes(X, m, n, width, data.data(), &by);
    }
    const std::uint8_t* row(std::size_t i) const { return data.data() + i * width; }

    Scratch<std::uint8_t> data;
    std::size_t width;
    Quantization by;
    bool finite;
};

struct RowAddresses {
    RowAddresses(const Int8Weights& W, const std::size_t* rows) {
        for (int r = 0; r < AT_ONCE; ++r) at[r] = W.rows + rows[r] * W.width;
    }
    const std::int8_t* at[AT_ONCE];
};

// Outputs of all rows, which are read once for all inputs.
void every_row(const Int8Weights& W, const Codes& x, std::size_t m, float* out, int n_threads) {
    const Int8Products& products = int8_products();
    Scratch<std::int32_t> raw(m * raw_stride(W.t));
    multiply_rows(W.t, m, raw.data(), n_threads,
                  [&](std::size_t first, std::size_t inputs, const std::size_t* rows, std::int32_t* sums) {
                      products.of_rows[inputs - 1](x.row(first), RowAddresses(W, rows).at, W.width, sums);
                  });
    for (std::size_t i = 0; i < m; ++i) {
        std::int32_t* row = raw.data() + i * raw_stride(W.t);
        for (std::size_t j = 0; j < W.t; ++j) row[j] -= x.by.zero_point * W.sums[j];
        put_outputs(row, x.by.scale, W.scale, W.bias, W.t, out + i * W.t);
    }
}

// Outputs of the rows that a mask names.
void masked_rows(const Int8Weights& W, const std::uint8_t* x, Quantization by, const std::uint8_t* mask,
                 float* out, int n_threads) {
    std::fill_n(out, W.t, 0.0f);
    const Int8Products& products = int8_products();
    multiply_masked_rows(
        mask, W.t, n_threads,
        [&](const std::size_t* rows, std::int32_t* sums) {
            products.of_rows[0](x, RowAddresses(W, rows).at, W.width, sums);
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
};

// Adds the rows begin, ..., end - 1 to sums (width,).
void add_weighted(const Weighted& some, std::size_t begin, std::size_t end, std::size_t width,
                  std::int32_t* sums) {
    const Int8Products& products = int8_products();
    for (std::size_t first = begin; first < end; first += ADDED) {
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

// sums (width,) = the rows of `plus` minus those of `minus`.
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

}  // namespace

void int8_rows(const Int8Weights& W, const float* X, const std::uint8_t* mask, std::size_t m, float* out,
               int n_threads) {
    if (m == 0 || W.t == 0) return;
    const Codes x(X, m, W.n, W.width);
    if (!x.finite)
        std::fill_n(out, m * W.t, std::numeric_limits<float>::quiet_NaN());
    else if (!mask)
        every_row(W, x, m, out, n_threads);
    else
        for (std::size_t i = 0; i < m; ++i)
            masked_rows(W, x.row(i), x.by, mask + i * W.t, out + i * W.t, n_threads);
}

std::int64_t int8_columns(const Int8Weights& V, const float* H, std::size_t m, float* out, int n_threads) {
    if (m == 0) return 0;
    const Codes h(H, m, V.t, V.t);
    if (!h.finite) {
        std::fill_n(out, m * V.n, std::numeric_limits<float>::quiet_NaN());
        return static_cast<std::int64_t>(m * V.t);
    }
    Scratch<std::int32_t> sums(V.width);
    std::int64_t entries = 0;
    for (std::size_t i = 0; i < m; ++i) {
        Weighted plus, minus;
        for_each_other(h.row(i), V.t, static_cast<std::uint8_t>(h.by.zero_point), [&](std::size_t j) {
            const int factor = h.row(i)[j] - h.by.zero_point;
            (factor > 0 ? plus : minus).add(V.rows + j * V.width, std::abs(factor));
        });
        entries += static_cast<std::int64_t>(plus.rows.size() + minus.rows.size());
        sum_of_rows(plus, minus, V.width, sums.data(), n_threads);
        put_outputs(sums.data(), h.by.scale, V.scale, V.bias, V.n, out + i * V.n);
    }
    return entries;
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bind_int8.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<Int8Linear>(module, "Int8Linear")
        .def(nb::init<Array<const std::int8_t, 2>, Int8Linear::Numbers, Int8Linear::Numbers, std::size_t>(),
             nb::arg("rows"), nb::arg("scale"), nb::arg("bias"), nb::arg("n"))
        .def("rows", &Int8Linear::rows)
        .def("rows_at", &Int8Linear::rows_at)
        .def("columns", &Int8Linear::columns);
    module.def(
        "quantize_inputs",
        [](Array<const float, 2> X, Array<std::uint8_t, 2> codes) {
            Quantization by{1, 0};
            const std::size_t m = X.shape(0), n = X.shape(1);
            nb::gil_scoped_release unlocked;
            const bool finite = SPARSACT_DISPATCH(int8_codes, X.data(), m, n, n, codes.data(), &by);
            return std::make_tuple(finite, by.scale, by.zero_point);
        },
        nb::arg("X").noconvert(), nb::arg("codes").noconvert());
}

}  // namespace sparsact

#endif
