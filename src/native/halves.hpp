// Numbers as they are stored and as they are added: bfloat16, the upper half of a float32, and float16 are
// added as float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vector.hpp"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace sparsact {

struct Bfloat16 {
    std::uint16_t bits;
};
struct Float16 {
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
template <>
struct real_of<Float16> {
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

SPARSACT_INLINE float widened(Float16 value) {
#ifdef __F16C__
    return _cvtsh_ss(value.bits);
#else
    const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16,
                        size = value.bits & 0x7FFF;
    std::uint32_t bits =
        (size << 13) + (size < 0x7C00 ? 112u << 23 : 224u << 23);  // infinity stays what it is
    if (size < 0x400) {                                            // multiples of 2^-24
        const float small = static_cast<float>(size) * 0x1p-24f;
        std::memcpy(&bits, &small, sizeof bits);
    }
    bits |= sign;
    float real;
    std::memcpy(&real, &bits, sizeof real);
    return real;
#endif
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
SPARSACT_INLINE void narrow(float real, Float16* to) {
#ifdef __F16C__
    to->bits = _cvtss_sh(real, _MM_FROUND_TO_NEAREST_INT);
#else
    std::uint32_t bits;
    std::memcpy(&bits, &real, sizeof bits);
    const std::uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    std::uint32_t rounded;
    if (size > 0x7F800000) {
        rounded = 0x7E00 | (size >> 13 & 0x3FF);
    } else if (size < 113u << 23) {  // below 2^-14: the sum with 1/2 has steps of 2^-24
        const float sum = (real < 0 ? -real : real) + 0.5f;
        std::memcpy(&rounded, &sum, sizeof rounded);
        rounded -= 126u << 23;
    } else {
        rounded = (size + 0xFFF + (size >> 13 & 1) - (112u << 23)) >> 13;
        if (size >= 143u << 23 || rounded > 0x7C00) rounded = 0x7C00;
    }
    to->bits = static_cast<std::uint16_t>(sign | rounded);
#endif
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
SPARSACT_INLINE Vector<float> load_reals(const Float16* from) {
#if defined(SPARSACT_ISA_avx512)
    const __m512 reals = _mm512_cvtph_ps(load<__m256i>(from));
    return load<Vector<float>>(&reals);
#elif defined(SPARSACT_ISA_avx2)
    const __m256 reals = _mm256_cvtph_ps(load<__m128i>(from));
    return load<Vector<float>>(&reals);
#else
    Vector<float> reals;
    float found[lanes<float>];
    for (int lane = 0; lane < lanes<float>; ++lane) found[lane] = widened(from[lane]);
    std::memcpy(&reals, found, sizeof reals);
    return reals;
#endif
}

}  // namespace sparsact::SPARSACT_ISA
