// Tables of bits: packing two-valued columns into words, and transposing packed bits.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

constexpr std::size_t WORD = 64;

// A table (m, n) of any layout; strides count elements and may be negative.
template <class T>
struct Table {
    const T* data;
    std::size_t m, n;
    std::ptrdiff_t row_stride, column_stride;
};

// One of the two values that a table may hold; `exists` is false where T cannot represent it.
template <class T>
struct Value {
    T value;
    bool exists;
};

// Fills columns (n, words of m); returns the flat index of the first element that is neither value, or -1.
SPARSACT_DECLARE(template <class T>
                 std::int64_t pack_columns(Table<T> X, Value<T> zero, Value<T> one, std::uint64_t* columns);
                 // columns (n, words of m) to rows (m, words of n).
                 void transpose_bits(const std::uint64_t* columns, std::size_t n, std::size_t m,
                                     std::uint64_t* rows);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cstdlib>

#include "builtins.hpp"
#include "equal_lanes.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

// Copies a block of at most 64 x 64 elements to columns of 64, along the shorter stride.
template <class T>
void gather(const T* x, std::size_t rows, std::size_t columns, std::ptrdiff_t row_stride,
            std::ptrdiff_t column_stride, T* block) {
    const auto at = [=](std::size_t r, std::size_t j) {
        return x[static_cast<std::ptrdiff_t>(r) * row_stride +
                 static_cast<std::ptrdiff_t>(j) * column_stride];
    };
    if (std::abs(row_stride) < std::abs(column_stride))
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t r = 0; r < rows; ++r) block[j * WORD + r] = at(r, j);
    else
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t j = 0; j < columns; ++j) block[j * WORD + r] = at(r, j);
}

// Row k, bit b to row b, bit k: swaps ever smaller off-diagonal squares (Hacker's Delight, 7-3).
void transpose_64(std::uint64_t* block) {
    std::uint64_t low = ~std::uint64_t{0} >> 32;
    for (std::size_t half = 32; half; half /= 2, low ^= low << half)
        for (std::size_t start = 0; start < WORD; start += 2 * half)
            for (std::size_t k = start; k < start + half; ++k) {
                const std::uint64_t swapped = ((block[k] >> half) ^ block[k + half]) & low;
                block[k + half] ^= swapped;
                block[k] ^= swapped << half;
            }
}

}  // namespace

template <class T>
std::int64_t pack_columns(Table<T> X, Value<T> zero, Value<T> one, std::uint64_t* columns) {
    const std::size_t words = (X.m + WORD - 1) / WORD;
    const std::uint64_t zero_exists = zero.exists ? ~std::uint64_t{0} : 0,
                        one_exists = one.exists ? ~std::uint64_t{0} : 0;
    alignas(64) T block[WORD * WORD] = {};
    std::int64_t bad = -1;
    for (std::size_t word = 0; word < words; ++word) {
        const std::size_t rows = std::min(WORD, X.m - word * WORD);
        const std::uint64_t present = ~std::uint64_t{0} >> (WORD - rows);
        const bool in_place = X.row_stride == 1 && rows == WORD;
        for (std::size_t first = 0; first < X.n; first += WORD) {
            const std::size_t width = std::min(WORD, X.n - first);
            const T* x = X.data + static_cast<std::ptrdiff_t>(word * WORD) * X.row_stride +
                         static_cast<std::ptrdiff_t>(first) * X.column_stride;
            if (!in_place) gather(x, rows, width, X.row_stride, X.column_stride, block);
            for (std::size_t j = 0; j < width; ++j) {
                const T* column =
                    in_place ? x + static_cast<std::ptrdiff_t>(j) * X.column_stride : block + j * WORD;
                const std::uint64_t ones = equal_64(column, one.value) & one_exists & present;
                const std::uint64_t zeros = equal_64(column, zero.value) & zero_exists;
                columns[(first + j) * words + word] = ones;
                if (const std::uint64_t neither = ~(ones | zeros) & present) {
                    const std::size_t row = word * WORD + trailing_zeros(neither);
                    const auto flat = static_cast<std::int64_t>(row * X.n + first + j);
                    if (bad < 0 || flat < bad) bad = flat;
                }
            }
        }
    }
    return bad;
}

#define SPARSACT_PACK(T) template std::int64_t pack_columns(Table<T>, Value<T>, Value<T>, std::uint64_t*);
SPARSACT_PACK(double)
SPARSACT_PACK(float)
SPARSACT_PACK(std::int64_t)
SPARSACT_PACK(std::int32_t)
SPARSACT_PACK(std::int8_t)
SPARSACT_PACK(std::uint8_t)
#undef SPARSACT_PACK

void transpose_bits(const std::uint64_t* columns, std::size_t n, std::size_t m, std::uint64_t* rows) {
    const std::size_t words = (m + WORD - 1) / WORD, row_words = (n + WORD - 1) / WORD;
    constexpr std::size_t LINE = 8;  // words of a cache line: each line of a column is fetched once
    alignas(64) std::uint64_t blocks[LINE][WORD];
    for (std::size_t first = 0; first < n; first += WORD)
        for (std::size_t word = 0; word < words; word += LINE) {
            const std::size_t height = std::min(WORD, n - first), width = std::min(LINE, words - word);
            for (std::size_t j = 0; j < height; ++j)
                for (std::size_t k = 0; k < width; ++k)
                    blocks[k][j] = columns[(first + j) * words + word + k];
            for (std::size_t k = 0; k < width; ++k) {
                std::fill(blocks[k] + height, blocks[k] + WORD, 0);
                transpose_64(blocks[k]);
                const std::size_t row = (word + k) * WORD;
                for (std::size_t r = 0; r < std::min(WORD, m - row); ++r)
                    rows[(row + r) * row_words + first / WORD] = blocks[k][r];
            }
        }
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include <cmath>
#include <limits>

#include "bind.hpp"

namespace sparsact {

namespace {

using Words = Array<std::uint64_t, 2>;
using ConstWords = Array<const std::uint64_t, 2>;

template <class T>
Value<T> value_of(double value) {
    using Limits = std::numeric_limits<T>;
    if constexpr (!Limits::is_integer) return {static_cast<T>(value), true};
    // The largest int64 is no double; max / 2 + 1 is a power of two, so this bound is exact.
    const double bound = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
    const bool exists =
        value >= static_cast<double>(Limits::lowest()) && value < bound && value == std::floor(value);
    return {exists ? static_cast<T>(value) : T{0}, exists};
}

template <class T>
void bind_pack_columns(nb::module_& module) {
    module.def(
        "pack_columns",
        [](nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> X, double zero, double one, Words columns) {
            const Table<T> table{X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
            std::uint64_t* data = columns.data();
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(pack_columns, table, value_of<T>(zero), value_of<T>(one), data);
        },
        nb::arg("X").noconvert(), nb::arg("zero"), nb::arg("one"), nb::arg("columns").noconvert());
}

}  // namespace

SPARSACT_BINDINGS(module) {
    bind_pack_columns<double>(module);
    bind_pack_columns<float>(module);
    bind_pack_columns<std::int64_t>(module);
    bind_pack_columns<std::int32_t>(module);
    bind_pack_columns<std::int8_t>(module);
    bind_pack_columns<std::uint8_t>(module);
    module.def(
        "transpose_bits",
        [](ConstWords columns, Words rows) {
            const std::uint64_t* from = columns.data();
            std::uint64_t* to = rows.data();
            const std::size_t n = columns.shape(0), m = rows.shape(0);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(transpose_bits, from, n, m, to);
        },
        nb::arg("columns").noconvert(), nb::arg("rows").noconvert());
}

}  // namespace sparsact

#endif
