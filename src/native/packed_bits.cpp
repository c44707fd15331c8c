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
#include "transpose_bits.hpp"
#include "vector.hpp"

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

constexpr std::size_t SIDE = 8;  // blocks side by side: the words of a cache line

// Swaps off-diagonal squares of 4 x stride, 2 x stride and stride bits, between eight rows that far apart.
template <int stride, class V>
SPARSACT_INLINE void swap_squares(V (&rows)[8]) {
#pragma GCC unroll 3
    for (int half = 4; half; half /= 2) {
        std::uint64_t low = ~std::uint64_t{0} / ((std::uint64_t{1} << half * stride) + 1);
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k)
            if (!(k & half)) {
                const V swapped = ((rows[k] >> half * stride) ^ rows[k + half]) & low;
                rows[k + half] ^= swapped;
                rows[k] ^= swapped << half * stride;
            }
    }
}

// Of each block, row k, bit b to row b, bit k (Hacker's Delight, 7-3).
void transpose_64(std::uint64_t (*blocks)[SIDE]) {
    using V = Vector<std::uint64_t>;
    const auto pass = [&](auto stride, std::size_t first, std::size_t i) {
        V rows[8];
        for (std::size_t k = 0; k < 8; ++k) std::memcpy(&rows[k], blocks[first + stride * k] + i, sizeof(V));
        swap_squares<stride>(rows);
        for (std::size_t k = 0; k < 8; ++k) store(blocks[first + stride * k] + i, rows[k]);
    };
    for (std::size_t i = 0; i < SIDE; i += lanes<std::uint64_t>) {
        for (std::size_t k = 0; k < 8; ++k) pass(std::integral_constant<int, 8>{}, k, i);
        for (std::size_t k = 0; k < 8; ++k) pass(std::integral_constant<int, 1>{}, 8 * k, i);
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
    alignas(64) std::uint64_t blocks[WORD][SIDE];
    // Side by side stand blocks of the same columns or, where columns are short, of the same word.
    const bool along = words >= SIDE;
    for (std::size_t row_word = 0; row_word < row_words; row_word += along ? 1 : SIDE)
        for (std::size_t word = 0; word < words; word += along ? SIDE : 1) {
            const std::size_t some = std::min(SIDE, along ? words - word : row_words - row_word);
            for (std::size_t i = 0; i < some; ++i) {
                const std::size_t first = WORD * (along ? row_word : row_word + i),
                                  end = std::min(WORD, n - first);
                const std::uint64_t* from = columns + first * words + (along ? word + i : word);
                for (std::size_t j = 0; j < end; ++j) blocks[j][i] = from[j * words];
                for (std::size_t j = end; j < WORD; ++j) blocks[j][i] = 0;
            }
            transpose_64(blocks);
            for (std::size_t i = 0; i < some; ++i) {
                const std::size_t row = WORD * (along ? word + i : word), end = std::min(WORD, m - row);
                std::uint64_t* to = rows + row * row_words + (along ? row_word : row_word + i);
                for (std::size_t r = 0; r < end; ++r) to[r * row_words] = blocks[r][i];
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
