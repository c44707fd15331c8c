// Tables of bits: packing two-valued columns into words, and transposing packed bits.
#pragma once

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
