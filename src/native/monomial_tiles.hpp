// Sums of signed integers over a tile of columns, by lookup: four rows and every lane at a time.
//
// A tile holds, for each group of four rows, the bits of these rows in each of its columns, a place in a
// table of 16 sums. Sums of a block of groups saturate in 8 bits, sums of blocks in 16, in the same order on
// every instruction set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vector.hpp"

#ifndef SPARSACT_ISA_portable
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {

constexpr std::size_t GROUPS = 32, TILE = 64, ENTRIES = 16;  // of a block, of a tile, of a table
constexpr std::size_t TOGETHER = 4;                          // prefixes that share the loads of a tile
constexpr std::int32_t LARGEST = 32767;

#ifdef SPARSACT_ISA_portable

inline std::int32_t clipped(std::int32_t x, std::int32_t low, std::int32_t high) {
    return std::min(std::max(x, low), high);
}

// A table with the signs of a prefix: entry i is entry i ^ bits.
inline void permute(const std::int8_t* table, std::uint8_t bits, std::int8_t* out) {
    for (std::size_t i = 0; i < ENTRIES; ++i) out[i] = table[i ^ bits];
}

// sums (TOGETHER, stride) += what the tables (GROUPS, TOGETHER, ENTRIES) say of a tile.
inline void add_tile(const std::int8_t* tables, const std::uint8_t* tile, std::int16_t* sums,
                     std::size_t stride) {
    for (std::size_t p = 0; p < TOGETHER; ++p)
        for (std::size_t c = 0; c < TILE; ++c) {
            std::int32_t sum = 0;
            for (std::size_t g = 0; g < GROUPS; ++g)
                sum = clipped(sum + tables[(g * TOGETHER + p) * ENTRIES + tile[g * TILE + c]], -128, 127);
            std::int16_t& total = sums[p * stride + c];
            total = static_cast<std::int16_t>(clipped(total + sum, -LARGEST - 1, LARGEST));
        }
}

// Which of the 16 sums are at least so large in magnitude.
inline std::uint32_t large(const std::int16_t* sums, std::int32_t least) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < 16; ++i) found |= std::uint32_t{std::abs(sums[i]) >= least} << i;
    return found;
}

#else

inline void permute(const std::int8_t* table, std::uint8_t bits, std::int8_t* out) {
    const __m128i places = _mm_xor_si128(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                         _mm_set1_epi8(static_cast<char>(bits)));
    const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    _mm_store_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(entries, places));
}

inline std::uint32_t large(const std::int16_t* sums, std::int32_t least) {
    const __m256i lowest = _mm256_set1_epi16(-LARGEST),
                  below = _mm256_set1_epi16(static_cast<short>(least - 1));
    const __m256i found = _mm256_max_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(sums)), lowest);
    const __m256i at_least = _mm256_cmpgt_epi16(_mm256_abs_epi16(found), below);
    return _pext_u32(static_cast<std::uint32_t>(_mm256_movemask_epi8(at_least)), 0x55555555u);
}

#ifdef SPARSACT_ISA_avx512
using Bytes = __m512i;
SPARSACT_INLINE Bytes load_bytes(const std::uint8_t* from) { return _mm512_loadu_si512(from); }
SPARSACT_INLINE Bytes spread(const std::int8_t* table) {
    return _mm512_maskz_broadcast_i32x4(0xFFFF, _mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}
SPARSACT_INLINE Bytes added(Bytes sum, Bytes table, Bytes places) {
    return _mm512_adds_epi8(sum, _mm512_shuffle_epi8(table, places));
}
SPARSACT_INLINE void add_widened(std::int16_t* sums, Bytes bytes) {
    alignas(64) std::int8_t halves[2][32];
    _mm512_store_si512(halves, bytes);
    const __m512i low = _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<__m256i*>(halves[0])));
    const __m512i high = _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<__m256i*>(halves[1])));
    _mm512_store_si512(sums, _mm512_adds_epi16(_mm512_load_si512(sums), low));
    _mm512_store_si512(sums + 32, _mm512_adds_epi16(_mm512_load_si512(sums + 32), high));
}
#else
using Bytes = __m256i;
SPARSACT_INLINE Bytes load_bytes(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SPARSACT_INLINE Bytes spread(const std::int8_t* table) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}
SPARSACT_INLINE Bytes added(Bytes sum, Bytes table, Bytes places) {
    return _mm256_adds_epi8(sum, _mm256_shuffle_epi8(table, places));
}
SPARSACT_INLINE void add_widened(std::int16_t* sums, Bytes bytes) {
    auto* at = reinterpret_cast<__m256i*>(sums);
    const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes));
    const __m256i high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes, 1));
    _mm256_store_si256(at, _mm256_adds_epi16(_mm256_load_si256(at), low));
    _mm256_store_si256(at + 1, _mm256_adds_epi16(_mm256_load_si256(at + 1), high));
}
#endif

SPARSACT_INLINE void add_tile(const std::int8_t* tables, const std::uint8_t* tile, std::int16_t* sums,
                              std::size_t stride) {
    constexpr std::size_t VECTORS = TILE / sizeof(Bytes);
    Bytes sum[TOGETHER][VECTORS] = {};
    for (std::size_t g = 0; g < GROUPS; ++g) {
        Bytes places[VECTORS];
        for (std::size_t v = 0; v < VECTORS; ++v) places[v] = load_bytes(tile + g * TILE + v * sizeof(Bytes));
        for (std::size_t p = 0; p < TOGETHER; ++p) {
            const Bytes table = spread(tables + (g * TOGETHER + p) * ENTRIES);
            for (std::size_t v = 0; v < VECTORS; ++v) sum[p][v] = added(sum[p][v], table, places[v]);
        }
    }
    for (std::size_t p = 0; p < TOGETHER; ++p)
        for (std::size_t v = 0; v < VECTORS; ++v)
            add_widened(sums + p * stride + v * sizeof(Bytes), sum[p][v]);
}

#endif

}  // namespace sparsact::SPARSACT_ISA
