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
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr int ADDED = 8;             // rows that are added up at once
constexpr std::size_t PACKED = 256;  // rows of INT8_BLOCK bytes that are packed at once
constexpr double ADDED_ALONE = 2;  // what a row costs that is added for one input, in products of packed rows

struct Int8Products {
    void (*of_rows[MAX_INPUTS])(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                                std::int32_t* sums);
    void (*add_rows)(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                     std::int32_t* sums, const std::int8_t* const* next);
    void (*in_order)(std::int32_t* sums, std::size_t width);
    void (*pack)(const std::int8_t* const* rows, std::size_t groups, std::size_t column, std::int8_t* packed);
    void (*add_packed[MAX_INPUTS])(const std::uint8_t* x, std::size_t apart, const std::int8_t* packed,
                                   std::size_t groups, std::int32_t* sums);
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA

#define INT8_WAY in_16_bits
#define INT8_TARGET
#include "int8_products.hpp"
#undef INT8_WAY
#undef INT8_TARGET

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#define INT8_WAY in_32_bits
#ifdef SPARSACT_ISA_avx512
#define INT8_TARGET __attribute__((target("avx512vnni")))
#else
#define INT8_TARGET __attribute__((target("avxvnni")))
#endif
#define INT8_VNNI
#include "int8_products.hpp"
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

#ifdef SPARSACT_ISA_avx2
bool has_avx_vnni() {  // __builtin_cpu_supports does not know it in every compiler
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#endif

inline const Int8Products& int8_products() {
#if defined(SPARSACT_ISA_avx512)
    if (__builtin_cpu_supports("avx512vnni")) return in_32_bits::products;
#elif defined(SPARSACT_ISA_avx2)
    static const bool vnni = has_avx_vnni();
    if (vnni) return in_32_bits::products;
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
    multiply_rows(
        W.t, m, W.width, n_threads,
        [&](std::size_t first, std::size_t inputs, const std::size_t* rows, std::int32_t* sums) {
            products.of_rows[inputs - 1](x.row(first), RowAddresses(W, rows).at, W.width, sums);
        },
        [&](std::size_t i, std::size_t j, std::size_t count, std::int32_t* sums) {
            for (std::size_t p = 0; p < count; ++p) sums[p] -= x.by.zero_point * W.sums[j + p];
            put_outputs(sums, x.by.scale, W.scale + j, W.bias + j, count, out + i * W.t + j);
        });
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
    void clear() { rows.clear(), factors.clear(); }
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

// Outputs from the rows of all `units`, the only ones whose codes are not that of 0, for some inputs
// together.
void packed_rows(const Int8Weights& V, const Codes& h, std::size_t m, const std::vector<std::size_t>& units,
                 float* out, int n_threads) {
    const Int8Products& products = int8_products();
    const std::int32_t zero_point = h.by.zero_point;
    const std::size_t count = (units.size() + 3) / 4 * 4;
    const std::size_t inputs = m + (zero_point != 0);  // a last one of ones gives the sums of the weights
    Scratch<std::uint8_t> x(inputs * count);
    std::vector<const std::int8_t*> rows(count, V.rows);
    std::memset(x.data(), 0, inputs * count);
    for (std::size_t p = 0; p < units.size(); ++p) {
        rows[p] = V.rows + units[p] * V.width;
        if (zero_point) x[m * count + p] = 1;
    }
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t p = 0; p < units.size(); ++p) x[i * count + p] = h.row(i)[units[p]];
    in_shares(n_threads, V.width / INT8_BLOCK, [&](std::size_t block, std::size_t end) {
        Scratch<std::int8_t> packed(PACKED * INT8_BLOCK);
        Scratch<std::int32_t> sums(inputs * INT8_BLOCK);
        for (; block < end; ++block) {
            const std::size_t column = block * INT8_BLOCK;
            std::fill_n(sums.data(), inputs * INT8_BLOCK, 0);
            for (std::size_t first = 0; first < count; first += PACKED) {
                const std::size_t groups = std::min(PACKED, count - first) / 4;
                products.pack(rows.data() + first, groups, column, packed.data());
                for (std::size_t i = 0; i < inputs; i += INPUTS_AT_ONCE)
                    products.add_packed[std::min(INPUTS_AT_ONCE, inputs - i) - 1](
                        x.data() + i * count + first, count, packed.data(), groups,
                        sums.data() + i * INT8_BLOCK);
            }
            const std::int32_t* all = sums.data() + m * INT8_BLOCK;
            for (std::size_t i = 0; i < m; ++i) {
                std::int32_t* row = sums.data() + i * INT8_BLOCK;
                if (zero_point)
                    for (std::size_t k = 0; k < INT8_BLOCK; ++k) row[k] -= zero_point * all[k];
                products.in_order(row, INT8_BLOCK);
                put_outputs(row, h.by.scale, V.scale + column, V.bias + column,
                            std::min(INT8_BLOCK, V.n - column), out + i * V.n + column);
            }
        }
    });
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
    const std::uint8_t zero = static_cast<std::uint8_t>(h.by.zero_point);
    Scratch<std::uint8_t> used(V.t);
    std::memset(used.data(), 0, V.t);
    std::int64_t entries = 0;
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < V.t; ++j) {
            const bool other = h.row(i)[j] != zero;
            used[j] |= other;
            entries += other;
        }
    std::vector<std::size_t> units;
    for_each_other(used.data(), V.t, 0, [&](std::size_t j) { units.push_back(j); });
    if (m > 1 && static_cast<double>(entries) * ADDED_ALONE > static_cast<double>(units.size() * (m + 1))) {
        packed_rows(V, h, m, units, out, n_threads);
        return entries;
    }
    Scratch<std::int32_t> sums(V.width);
    Weighted plus, minus;
    for (std::size_t i = 0; i < m; ++i) {
        plus.clear(), minus.clear();
        for_each_other(h.row(i), V.t, zero, [&](std::size_t j) {
            const int factor = h.row(i)[j] - h.by.zero_point;
            (factor > 0 ? plus : minus).add(V.rows + j * V.width, std::abs(factor));
        });
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
