// Comparison of 64 neighbouring values with one value, as a word of 64 bits.
//
// Everything here has internal linkage: each instruction set keeps its own copy.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef SPARSACT_ISA_portable
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

#if defined(SPARSACT_ISA_avx512)

constexpr std::size_t REGISTER = 64;
std::uint64_t equal_lanes(const double* x, double value) {
    return _mm512_cmp_pd_mask(_mm512_loadu_pd(x), _mm512_set1_pd(value), _CMP_EQ_OQ);
}
std::uint64_t equal_lanes(const float* x, float value) {
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(value), _CMP_EQ_OQ);
}
std::uint64_t equal_lanes(const std::int64_t* x, std::int64_t value) {
    return _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(x), _mm512_set1_epi64(value));
}
std::uint64_t equal_lanes(const std::int32_t* x, std::int32_t value) {
    return _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(x), _mm512_set1_epi32(value));
}
std::uint64_t equal_lanes(const std::int8_t* x, std::int8_t value) {
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(x), _mm512_set1_epi8(value));
}

#elif defined(SPARSACT_ISA_avx2)

constexpr std::size_t REGISTER = 32;
template <class T>
__m256i load(const T* x) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
}
std::uint64_t equal_lanes(const double* x, double value) {
    return _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(x), _mm256_set1_pd(value), _CMP_EQ_OQ));
}
std::uint64_t equal_lanes(const float* x, float value) {
    return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_set1_ps(value), _CMP_EQ_OQ));
}
std::uint64_t equal_lanes(const std::int64_t* x, std::int64_t value) {
    const __m256i equal = _mm256_cmpeq_epi64(load(x), _mm256_set1_epi64x(value));
    return _mm256_movemask_pd(_mm256_castsi256_pd(equal));
}
std::uint64_t equal_lanes(const std::int32_t* x, std::int32_t value) {
    const __m256i equal = _mm256_cmpeq_epi32(load(x), _mm256_set1_epi32(value));
    return _mm256_movemask_ps(_mm256_castsi256_ps(equal));
}
std::uint64_t equal_lanes(const std::int8_t* x, std::int8_t value) {
    const __m256i equal = _mm256_cmpeq_epi8(load(x), _mm256_set1_epi8(value));
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
}

#else

constexpr std::size_t REGISTER = 1;  // one lane at a time, whatever its type
template <class T>
std::uint64_t equal_lanes(const T* x, T value) {
    return *x == value;
}

#endif

std::uint64_t equal_lanes(const std::uint8_t* x, std::uint8_t value) {
    return equal_lanes(reinterpret_cast<const std::int8_t*>(x), static_cast<std::int8_t>(value));
}

template <class T>
std::uint64_t equal_64(const T* x, T value) {
    constexpr std::size_t lanes = REGISTER < sizeof(T) ? 1 : REGISTER / sizeof(T);
    std::uint64_t word = 0;
    for (std::size_t first = 0; first < 64; first += lanes) word |= equal_lanes(x + first, value) << first;
    return word;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
