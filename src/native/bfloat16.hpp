// Numbers as they are stored and as they are added: bfloat16 is the upper half of a float32, and is added as
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vector.hpp"

namespace sparsact {

struct Bfloat16 {
    std::uint16_t bits;
};

}  // namespace sparsact

namespace sparsact::SPARSACT_ISA {

template <class T>
struct real_of {
    using type = T;
};
template <>
struct real_of<Bfloat16> {
    using type = float;
};
template <class T>
using Real = typename real_of<T>::type;

template <class T>
SPARSACT_INLINE T widened(T value) {
    return value;
}
SPARSACT_INLINE float widened(Bfloat16 value) {
    const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
    float real;
    std::memcpy(&real, &bits, sizeof real);
    return real;
}

template <class T>
SPARSACT_INLINE void narrow(T real, T* to) {
    *to = real;
}
// To the nearest, ties to even; a NaN stays one.
SPARSACT_INLINE void narrow(float real, Bfloat16* to) {
    std::uint32_t bits;
    std::memcpy(&bits, &real, sizeof bits);
    const std::uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
    to->bits = static_cast<std::uint16_t>((real != real ? bits | 0x400000 : rounded) >> 16);
}

// A vector of numbers to add with.
template <class T>
SPARSACT_INLINE Vector<Real<T>> load_reals(const T* from) {
    return load<Vector<Real<T>>>(from);
}
SPARSACT_INLINE Vector<float> load_reals(const Bfloat16* from) {
#ifdef SPARSACT_VECTORS
    using Halves = Vector<std::uint16_t, widest_bytes / 2>;
    const auto bits = __builtin_convertvector(load<Halves>(from), Vector<std::uint32_t>) << 16;
    return load<Vector<float>>(&bits);
#else
    return widened(*from);
#endif
}

}  // namespace sparsact::SPARSACT_ISA
