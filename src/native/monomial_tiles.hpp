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
#ifdef SPARSACT_ISA_avx512
constexpr std::size_t SIDE_BY_SIDE =
    4;  // tiles that share a table: Zen 4 spreads it on a port of the lookups
#else
constexpr std::size_t SIDE_BY_SIDE = 1;
#endif
constexpr std::int32_t LARGEST = 32767;

#ifdef SPARSACT_ISA_portable

inline std::int32_t clipped(std::int32_t x, std::int32_t low, std::int32_t high) {
    return std::min(std::max(x, low), high);
}

// Tables (GROUPS, ENTRIES) with the signs of a prefix: entry i of a group is entry i ^ its bits.
inline void permute(const std::int8_t* tables, const std::uint8_t* bits, std::int8_t* out) {
    for (std::size_t g = 0; g < GROUPS; ++g)
        for (std::size_t i = 0; i < ENTRIES; ++i) out[g * ENTRIES + i] = tables[g * ENTRIES + (i ^ bits[g])];
}

// sums (TOGETHER, stride) += what the tables (TOGETHER, GROUPS, ENTRIES) say of N tiles.
template <std::size_t N>
void add_tiles(const std::int8_t* tables, const std::uint8_t* tiles, std::int16_t* sums, std::size_t stride) {
    for (std::size_t p = 0; p < TOGETHER; ++p)
        for (std::size_t c = 0; c < N * TILE; ++c) {
            std::int32_t sum = 0;
            for (std::size_t g = 0; g < GROUPS; ++g)
                sum = clipped(
                    sum +
                        tables[(p * GROUPS + g) * ENTRIES + tiles[(c / TILE * GROUPS + g) * TILE + c % TILE]],
                    -128, 127);
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

inline std::uint32_t large(const std::int16_t* sums, std::int32_t least) {
    const __m256i lowest = _mm256_set1_epi16(-LARGEST),
                  below = _mm256_set1_epi16(static_cast<short>(least - 1));
    const __m256i found = _mm256_max_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(sums)), lowest);
    const __m256i at_least = _mm256_cmpgt_epi16(_mm256_abs_epi16(found), below);
    return _pext_u32(static_cast<std::uint32_t>(_mm256_movemask_epi8(at_least)), 0x55555555u);
}

constexpr long long ONES = 0x0101010101010101;

// Bytes: lanes of 16, each for a lookup of its own.
#ifdef SPARSACT_ISA_avx512
using Bytes = __m512i;
SPARSACT_INLINE Bytes byte_in_each_lane(const std::uint8_t* bytes) {
    const Bytes lane = _mm512_set_epi64(3 * ONES, 3 * ONES, 2 * ONES, 2 * ONES, ONES, ONES, 0, 0);
    return _mm512_shuffle_epi8(_mm512_set1_epi32(load<int>(bytes)), lane);
}
SPARSACT_INLINE Bytes spread(const std::int8_t* table) {
    return _mm512_maskz_broadcast_i32x4(0xFFFF, _mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}
SPARSACT_INLINE Bytes looked_up(Bytes table, Bytes places) { return _mm512_shuffle_epi8(table, places); }
SPARSACT_INLINE Bytes added(Bytes sum, Bytes values) { return _mm512_adds_epi8(sum, values); }
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
SPARSACT_INLINE Bytes byte_in_each_lane(const std::uint8_t* bytes) {
    const Bytes lane = _mm256_set_epi64x(ONES, ONES, 0, 0);
    return _mm256_shuffle_epi8(_mm256_set1_epi16(load<short>(bytes)), lane);
}
SPARSACT_INLINE Bytes spread(const std::int8_t* table) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}
SPARSACT_INLINE Bytes looked_up(Bytes table, Bytes places) { return _mm256_shuffle_epi8(table, places); }
SPARSACT_INLINE Bytes added(Bytes sum, Bytes values) { return _mm256_adds_epi8(sum, values); }
SPARSACT_INLINE void add_widened(std::int16_t* sums, Bytes bytes) {
    auto* at = reinterpret_cast<__m256i*>(sums);
    const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes));
    const __m256i high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes, 1));
    _mm256_store_si256(at, _mm256_adds_epi16(_mm256_load_si256(at), low));
    _mm256_store_si256(at + 1, _mm256_adds_epi16(_mm256_load_si256(at + 1), high));
}
#endif

inline void permute(const std::int8_t* tables, const std::uint8_t* bits, std::int8_t* out) {
    alignas(16) static constexpr std::int8_t order[ENTRIES] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                               8, 9, 10, 11, 12, 13, 14, 15};
    constexpr std::size_t LANES = sizeof(Bytes) / ENTRIES;
    for (std::size_t g = 0; g < GROUPS; g += LANES)
        store(out + g * ENTRIES,
              looked_up(load<Bytes>(tables + g * ENTRIES), spread(order) ^ byte_in_each_lane(bits + g)));
}

template <std::size_t N>
void add_tiles(const std::int8_t* tables, const std::uint8_t* tiles, std::int16_t* sums, std::size_t stride) {
    constexpr std::size_t OF_TILE = TILE / sizeof(Bytes), VECTORS = N * OF_TILE;
    Bytes sum[TOGETHER][VECTORS] = {};
    for (std::size_t g = 0; g < GROUPS; ++g) {
        Bytes places[VECTORS];
        for (std::size_t v = 0; v < VECTORS; ++v)
            places[v] = load<Bytes>(tiles + (v / OF_TILE * GROUPS + g) * TILE + v % OF_TILE * sizeof(Bytes));
        for (std::size_t p = 0; p < TOGETHER; ++p) {
            const Bytes table = spread(tables + (p * GROUPS + g) * ENTRIES);
            for (std::size_t v = 0; v < VECTORS; ++v)
                sum[p][v] = added(sum[p][v], looked_up(table, places[v]));
        }
    }
    for (std::size_t p = 0; p < TOGETHER; ++p)
        for (std::size_t v = 0; v < VECTORS; ++v)
            add_widened(sums + p * stride + v * sizeof(Bytes), sum[p][v]);
}

#endif

}  // namespace sparsact::SPARSACT_ISA
