// Which numbers are not zero: neither 0 nor -0, so that what is no number counts. Internal linkage: each
// instruction set keeps its own copy.
#pragma once

#include <type_traits>

#include "compress.hpp"
#include "halves.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 8, std::uint64_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                          std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

// All bits that a number other than zero may have: not the sign, which a mask of bytes has not.
template <class T>
constexpr Bits<T> MAGNITUDE =
    static_cast<Bits<T>>(static_cast<Bits<T>>(~Bits<T>{}) >> (sizeof(T) == 1 ? 0 : 1));

template <class T>
SPARSACT_INLINE bool nonzero(const T* from) {
    Bits<T> bits;
    std::memcpy(&bits, from, sizeof bits);
    return (bits & MAGNITUDE<T>) != 0;
}

// A bit for each of sixteen numbers.
template <class T>
SPARSACT_INLINE unsigned nonzero_bits(const T* from) {
#ifdef SPARSACT_ISA_portable
    unsigned bits = 0;
    for (unsigned lane = 0; lane < 16; ++lane) bits |= static_cast<unsigned>(nonzero(from + lane)) << lane;
    return bits;
#else
    Vector<Bits<T>, 16 * sizeof(T)> numbers;  // wider than a register, perhaps: the compiler splits it
    std::memcpy(&numbers, from, sizeof numbers);
    const auto on = (numbers & MAGNITUDE<T>) != 0;
    const auto bytes = __builtin_convertvector(on, Vector<std::int8_t, 16>);
    return static_cast<unsigned>(_mm_movemask_epi8(load<__m128i>(&bytes)));
#endif
}

// Places of the numbers of `from` (n,) that are not zero, in order, to `to`, which has room for n + 8; how
// many.
template <class T>
std::size_t nonzero_places(const T* from, std::size_t n, std::int64_t* to) {
    std::size_t i = 0, found = 0;
#ifndef SPARSACT_ISA_portable
    for (; i + 16 <= n; i += 16) {
        const unsigned on = nonzero_bits(from + i);
        put_places(to + found, on & 0xff, i);
        put_places(to + found + ones(on & 0xff), on >> 8, i + 8);
        found += ones(on);
    }
#endif
    for (; i < n; ++i) {
        to[found] = static_cast<std::int64_t>(i);
        found += nonzero(from + i);
    }
    return found;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
