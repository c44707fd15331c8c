// Products <q + 128, p> of a row of bytes with the digits of a few inputs, in the widest integers there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "screen_input.hpp"

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t INPUTS_AT_ONCE = 4;
constexpr std::size_t AHEAD = 2048;  // bytes from those in use to those that are asked for

// products[i] = <row, 256 high + low> of input i < count. No lane of 32 bits overflows for d <= 65,536.
using Products = void (*)(const std::uint8_t* row, std::size_t width, const Input* inputs,
                          std::int64_t* products);

SPARSACT_INLINE std::int64_t lane_sum(const std::int32_t* lanes, std::size_t count) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += lanes[i];
    return sum;
}

#if defined(SPARSACT_ISA_avx512)
template <int count>
__attribute__((target("avx512vnni"))) void products_vnni(const std::uint8_t* row, std::size_t width,
                                                         const Input* inputs, std::int64_t* products) {
    __m512i high[count], low[count];
    for (int c = 0; c < count; ++c) high[c] = low[c] = _mm512_setzero_si512();
    for (std::size_t i = 0; i < width; i += 64) {
        const __m512i q = _mm512_loadu_si512(row + i);
        prefetch(row + i, AHEAD);
        for (int c = 0; c < count; ++c) {
            high[c] = _mm512_dpbusd_epi32(high[c], q, _mm512_loadu_si512(inputs[c].high + i));
            low[c] = _mm512_dpbusd_epi32(low[c], q, _mm512_loadu_si512(inputs[c].low + i));
        }
    }
    std::int32_t sums[16];
    for (int c = 0; c < count; ++c) {
        _mm512_storeu_si512(sums, high[c]);
        products[c] = 256 * lane_sum(sums, 16);
        _mm512_storeu_si512(sums, low[c]);
        products[c] += lane_sum(sums, 16);
    }
}
#endif

#if defined(SPARSACT_ISA_avx512)
using Integers = __m512i;
SPARSACT_INLINE Integers widened_bytes(const std::uint8_t* from) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
SPARSACT_INLINE Integers widened_bytes(const std::int8_t* from) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
SPARSACT_INLINE Integers added_products(Integers sums, Integers x, Integers y) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(x, y));
}
#elif defined(SPARSACT_ISA_avx2)
using Integers = __m256i;
SPARSACT_INLINE Integers widened_bytes(const std::uint8_t* from) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
SPARSACT_INLINE Integers widened_bytes(const std::int8_t* from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
SPARSACT_INLINE Integers added_products(Integers sums, Integers x, Integers y) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(x, y));
}
#else
using Integers = std::int32_t;  // the compiler makes vectors of them
SPARSACT_INLINE Integers widened_bytes(const std::uint8_t* from) { return *from; }
SPARSACT_INLINE Integers widened_bytes(const std::int8_t* from) { return *from; }
SPARSACT_INLINE Integers added_products(Integers sums, Integers x, Integers y) { return sums + x * y; }
#endif

template <int count>
void products_widened(const std::uint8_t* row, std::size_t width, const Input* inputs,
                      std::int64_t* products) {
    constexpr std::size_t lanes_32 = sizeof(Integers) / 4, step = lanes_32 == 1 ? 1 : 2 * lanes_32;
    Integers high[count] = {}, low[count] = {};
    for (std::size_t block = 0; block < width; block += SCREEN_BLOCK) {
        prefetch(row + block, AHEAD);
        for (std::size_t i = block; i < block + SCREEN_BLOCK; i += step) {
            const Integers q = widened_bytes(row + i);
            for (int c = 0; c < count; ++c) {
                high[c] = added_products(high[c], q, widened_bytes(inputs[c].high + i));
                low[c] = added_products(low[c], q, widened_bytes(inputs[c].low + i));
            }
        }
    }
    std::int32_t sums[lanes_32];
    for (int c = 0; c < count; ++c) {
        std::memcpy(sums, high + c, sizeof sums);
        products[c] = 256 * lane_sum(sums, lanes_32);
        std::memcpy(sums, low + c, sizeof sums);
        products[c] += lane_sum(sums, lanes_32);
    }
}

// For 1, ..., INPUTS_AT_ONCE inputs, on this processor.
inline Products products_for(std::size_t count) {
#if defined(SPARSACT_ISA_avx512)
    if (__builtin_cpu_supports("avx512vnni")) {
        constexpr Products vnni[] = {products_vnni<1>, products_vnni<2>, products_vnni<3>, products_vnni<4>};
        return vnni[count - 1];
    }
#endif
    constexpr Products widened[] = {products_widened<1>, products_widened<2>, products_widened<3>,
                                    products_widened<4>};
    return widened[count - 1];
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
