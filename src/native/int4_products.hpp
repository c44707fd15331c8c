// Sums of products of signed bytes with int4 weights and their groups' multipliers, in 32 bits: of whole
// rows, and of a few rows added up.
//
// A byte holds weight + 8 of two columns of its group, 16 apart. Four products with codes of at most 127 fit
// in 16 bits, where they meet the multiplier, so that a group costs one multiplication a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "int4_linear.hpp"
#include "int8_ways.hpp"
#include "packed_rows.hpp"
#include "vector.hpp"

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr int INT4_ADDED = 8;  // rows that are added up at once

// Column of weights whose byte of a row is `byte` and which stand in its low or high half.
constexpr std::size_t int4_column(std::size_t byte, bool high) {
    return INT4_GROUP * (byte / 16) + byte % 16 + (high ? 16 : 0);
}

#if defined(SPARSACT_ISA_avx512)
using Nibbles = __m512i;
SPARSACT_INLINE Nibbles packed_at(const void* from) { return _mm512_loadu_si512(from); }
SPARSACT_INLINE void put_packed(void* to, Nibbles v) { _mm512_storeu_si512(to, v); }
#define WIDE(name) _mm512_##name
#define WIDE_AND _mm512_and_si512
SPARSACT_INLINE Nibbles of_each_group(const std::int8_t* multipliers) {
    std::int32_t four;
    std::memcpy(&four, multipliers, 4);
    const Nibbles place =
        _mm512_set_epi64(0x0380038003800380, 0x0380038003800380, 0x0280028002800280, 0x0280028002800280,
                         0x0180018001800180, 0x0180018001800180, 0x0080008000800080, 0x0080008000800080);
    return _mm512_srai_epi16(_mm512_shuffle_epi8(_mm512_set1_epi32(four), place), 8);
}
// 16 bits of `low`, then 16 of `high`, in each lane of 32.
SPARSACT_INLINE Nibbles alternating(Nibbles low, Nibbles high) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, low, high);
}
SPARSACT_INLINE __m256i folded(Nibbles v) {
    return _mm256_add_epi32(__builtin_shufflevector(v, v, 0, 1, 2, 3),
                            __builtin_shufflevector(v, v, 4, 5, 6, 7));
}
#elif defined(SPARSACT_ISA_avx2)
using Nibbles = __m256i;
SPARSACT_INLINE Nibbles packed_at(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
SPARSACT_INLINE void put_packed(void* to, Nibbles v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
#define WIDE(name) _mm256_##name
#define WIDE_AND _mm256_and_si256
SPARSACT_INLINE Nibbles of_each_group(const std::int8_t* multipliers) {
    std::int16_t two;
    std::memcpy(&two, multipliers, 2);
    const Nibbles place =
        _mm256_set_epi64x(0x0180018001800180, 0x0180018001800180, 0x0080008000800080, 0x0080008000800080);
    return _mm256_srai_epi16(_mm256_shuffle_epi8(_mm256_set1_epi16(two), place), 8);
}
SPARSACT_INLINE Nibbles alternating(Nibbles low, Nibbles high) { return _mm256_blend_epi16(low, high, 0xAA); }
SPARSACT_INLINE __m256i folded(Nibbles v) { return v; }
#endif

// Inputs as the kernels read them: codes in the order of the halves of a block of weights, and -8 times the
// sum of the four codes of each 16 bits, which takes the 8 off the weights again.
struct Int4Input {
    const std::int8_t* codes;     // 2 * width
    const std::int16_t* offsets;  // width / 2
};

inline void arrange_codes(const std::int8_t* codes, std::size_t width, std::int8_t* arranged,
                          std::int16_t* offsets) {
    for (std::size_t k = 0; k < width; k += INT4_BLOCK) {
        for (std::size_t byte = 0; byte < INT4_BLOCK; byte += 16)
            for (std::size_t half = 0; half < 2; ++half)
                std::memcpy(arranged + 2 * k + half * INT4_BLOCK + byte,
                            codes + 2 * k + int4_column(byte, half), 16);
        const std::int8_t *low = arranged + 2 * k, *high = low + INT4_BLOCK;
        for (std::size_t lane = 0; lane < INT4_BLOCK / 2; ++lane)
            offsets[k / 2 + lane] = static_cast<std::int16_t>(
                -8 * (low[2 * lane] + low[2 * lane + 1] + high[2 * lane] + high[2 * lane + 1]));
    }
}

#if defined(SPARSACT_ISA_avx512) || defined(SPARSACT_ISA_avx2)

SPARSACT_INLINE std::int32_t total_of(Nibbles lanes) {
    const __m256i v = folded(lanes);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}

// sums[r] = <row r, x> for AT_ONCE rows.
inline void int4_row_products(const Int4Input& x, const std::uint8_t* const* w,
                              const std::int8_t* const* multipliers, std::size_t width, std::int32_t* sums) {
    constexpr std::size_t step = sizeof(Nibbles);
    const Nibbles half = WIDE(set1_epi8)(15);
    Nibbles totals[AT_ONCE];
    for (Nibbles& total : totals) total = WIDE(set1_epi32)(0);
    for (std::size_t k = 0; k < width; k += step) {
        const std::size_t at = 2 * (k - k % INT4_BLOCK) + k % INT4_BLOCK;
#pragma GCC unroll 4
        for (int r = 0; r < AT_ONCE; ++r) {
            const Nibbles v = packed_at(w[r] + k);
            const Nibbles low = WIDE_AND(v, half), high = WIDE_AND(WIDE(srli_epi16)(v, 4), half);
            const Nibbles by = of_each_group(multipliers[r] + k / 16);
            const Nibbles one = WIDE(maddubs_epi16)(low, packed_at(x.codes + at));
            const Nibbles two = WIDE(maddubs_epi16)(high, packed_at(x.codes + at + INT4_BLOCK));
            const Nibbles four = WIDE(add_epi16)(WIDE(add_epi16)(one, packed_at(x.offsets + k / 2)), two);
            totals[r] = WIDE(add_epi32)(totals[r], WIDE(madd_epi16)(four, by));
        }
    }
    for (int r = 0; r < AT_ONCE; ++r) sums[r] = total_of(totals[r]);
}

// Each lane of 32 bits moved by 16.
SPARSACT_INLINE Nibbles to_high(Nibbles v) {
    return reinterpret_cast<Nibbles>(reinterpret_cast<Vector<std::uint32_t>>(v) << 16);
}
SPARSACT_INLINE Nibbles to_low(Nibbles v) {
    return reinterpret_cast<Nibbles>(reinterpret_cast<Vector<std::uint32_t>>(v) >> 16);
}

// sums += sum_r x[r] row_r for INT4_ADDED rows, while the next ones are asked for. Sums stand in the order of
// the lanes, until `int4_in_order`.
inline void int4_add_rows(const std::int8_t* x, const std::uint8_t* const* rows,
                          const std::int8_t* const* multipliers, std::size_t width, std::int32_t* sums,
                          const std::uint8_t* const* next) {
    constexpr std::size_t step = sizeof(Nibbles), count = step / 4;
    const Nibbles half = WIDE(set1_epi16)(15), eight = WIDE(set1_epi16)(8);
    for (std::size_t k = 0; k < width; k += step) {
        if (k % 64 == 0)
            for (int r = 0; r < INT4_ADDED; ++r) prefetch(next[r], k);
        Nibbles s[8], excess = WIDE(set1_epi32)(0);
        for (int v = 0; v < 8; ++v) s[v] = packed_at(sums + 2 * k + v * count);
        for (int r = 0; r < INT4_ADDED; r += 2) {
            const Nibbles by =
                WIDE(mullo_epi16)(alternating(of_each_group(multipliers[r] + k / 16),
                                              of_each_group(multipliers[r + 1] + k / 16)),
                                  alternating(WIDE(set1_epi16)(x[r]), WIDE(set1_epi16)(x[r + 1])));
            excess = WIDE(add_epi32)(excess, WIDE(madd_epi16)(by, eight));
            const Nibbles a = packed_at(rows[r] + k), b = packed_at(rows[r + 1] + k);
            const Nibbles pairs[] = {alternating(a, to_high(b)), alternating(to_low(a), b)};
            for (int p = 0; p < 2; ++p)
                for (int i = 0; i < 4; ++i) {
                    const Nibbles w = WIDE_AND(WIDE(srli_epi16)(pairs[p], 4 * i), half);
                    s[4 * p + i] = WIDE(add_epi32)(s[4 * p + i], WIDE(madd_epi16)(w, by));
                }
        }
        for (int v = 0; v < 8; ++v) put_packed(sums + 2 * k + v * count, WIDE(sub_epi32)(s[v], excess));
    }
}

inline void int4_in_order(const std::int32_t* sums, std::size_t width, std::int32_t* ordered) {
    constexpr std::size_t step = sizeof(Nibbles), count = step / 4;
    for (std::size_t k = 0; k < width; k += step)
        for (std::size_t lane = 0; lane < count; ++lane) {
            std::int32_t* of_lane = ordered + int4_column(k + 4 * lane, false);
            for (std::size_t v = 0; v < 8; ++v)
                of_lane[2 * (v / 4) + v % 4 / 2 + 16 * (v % 2)] = sums[2 * k + v * count + lane];
        }
}

// Weights (32,) of a group, times their multiplier.
inline void int4_unpacked(const std::uint8_t* row, std::int8_t multiplier, std::int16_t* to) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row)), half = _mm_set1_epi8(15);
    const __m128i halves[] = {_mm_and_si128(bytes, half), _mm_and_si128(_mm_srli_epi16(bytes, 4), half)};
    const __m256i by = _mm256_set1_epi16(multiplier);
    for (int h = 0; h < 2; ++h)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(to + 16 * h),
            _mm256_mullo_epi16(_mm256_sub_epi16(_mm256_cvtepu8_epi16(halves[h]), _mm256_set1_epi16(8)), by));
}

// Weights of 2 * groups rows as `int4_add_packed` reads them, two rows side by side, in 16 bits: of each row
// `blocks` blocks from `column` on.
inline void int4_pack_columns(const Int4Weights& V, const std::size_t* rows, std::size_t groups,
                              std::size_t column, std::size_t blocks, std::int16_t* packed) {
    constexpr std::size_t step = sizeof(Nibbles), count = step / 4;
    for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t c = 0; c < blocks * INT8_BLOCK; c += INT4_GROUP) {
            const std::size_t at = (column + c) / 2, group = (column + c) / INT4_GROUP;
            alignas(64) std::int16_t two[2][INT4_GROUP];
            for (int r = 0; r < 2; ++r) {
                const std::size_t j = rows[2 * g + r];
                int4_unpacked(V.row(j) + at, V.multipliers_of(j)[group], two[r]);
                prefetch(V.row(rows[2 * std::min(g + 4, groups - 1) + r]), at);
            }
            for (std::size_t k = 0; k < INT4_GROUP; k += count) {
                using Pairs = Vector<std::uint32_t>;
                using Halves = Vector<std::uint16_t, step / 2>;
                const Pairs pairs = __builtin_convertvector(load<Halves>(two[0] + k), Pairs) |
                                    __builtin_convertvector(load<Halves>(two[1] + k), Pairs) << 16;
                const std::size_t o = c + k;
                store(packed + 2 * (o / step * step * groups + g * step + o % step), pairs);
            }
        }
}

// sums[i] += sum_g x[i][g] row_g for INT8_BLOCK columns of packed rows.
template <int inputs>
void int4_add_packed(const std::int16_t* x, std::size_t apart, const std::int16_t* packed, std::size_t groups,
                     std::int32_t* sums) {
    constexpr std::size_t step = sizeof(Nibbles), count = step / 4;
    for (std::size_t c = 0; c < INT8_BLOCK; c += step) {
        Nibbles s[inputs][4];
        for (int i = 0; i < inputs; ++i)
            for (int v = 0; v < 4; ++v) s[i][v] = packed_at(sums + i * INT8_BLOCK + c + v * count);
        for (std::size_t g = 0; g < groups; ++g, packed += 2 * step) {
            Nibbles w[4];
            for (int v = 0; v < 4; ++v) w[v] = packed_at(packed + 2 * v * count);
            for (int i = 0; i < inputs; ++i) {
                std::int32_t two;
                std::memcpy(&two, x + i * apart + 2 * g, 4);
                const Nibbles by = WIDE(set1_epi32)(two);
                for (int v = 0; v < 4; ++v) s[i][v] = WIDE(add_epi32)(s[i][v], WIDE(madd_epi16)(by, w[v]));
            }
        }
        for (int i = 0; i < inputs; ++i)
            for (int v = 0; v < 4; ++v) put_packed(sums + i * INT8_BLOCK + c + v * count, s[i][v]);
    }
}
#undef WIDE
#undef WIDE_AND

#else

inline std::int32_t int4_weight(std::uint8_t byte, bool high) { return (high ? byte >> 4 : byte & 15) - 8; }

inline void int4_row_products(const Int4Input& x, const std::uint8_t* const* w,
                              const std::int8_t* const* multipliers, std::size_t width, std::int32_t* sums) {
    for (int r = 0; r < AT_ONCE; ++r) {
        sums[r] = 0;
        for (std::size_t k = 0; k < width; ++k) {
            const std::int8_t* low = x.codes + 2 * (k - k % INT4_BLOCK) + k % INT4_BLOCK;
            sums[r] += multipliers[r][k / 16] *
                       (low[0] * int4_weight(w[r][k], false) + low[INT4_BLOCK] * int4_weight(w[r][k], true));
        }
    }
}

inline void int4_add_rows(const std::int8_t* x, const std::uint8_t* const* rows,
                          const std::int8_t* const* multipliers, std::size_t width, std::int32_t* sums,
                          const std::uint8_t* const*) {
    for (int r = 0; r < INT4_ADDED; ++r)
        for (std::size_t k = 0; k < width; ++k)
            for (std::size_t half = 0; half < 2; ++half)
                sums[2 * k + half] += x[r] * multipliers[r][k / 16] * int4_weight(rows[r][k], half);
}

inline void int4_in_order(const std::int32_t* sums, std::size_t width, std::int32_t* ordered) {
    for (std::size_t k = 0; k < width; ++k)
        for (std::size_t half = 0; half < 2; ++half) ordered[int4_column(k, half)] = sums[2 * k + half];
}

inline std::int16_t int4_number(const Int4Weights& W, std::size_t row, std::size_t column) {
    const std::size_t byte = column / INT4_GROUP * 16 + column % 16;
    return static_cast<std::int16_t>(W.multipliers_of(row)[column / INT4_GROUP] *
                                     int4_weight(W.row(row)[byte], column % INT4_GROUP >= 16));
}

inline void int4_pack_columns(const Int4Weights& V, const std::size_t* rows, std::size_t groups,
                              std::size_t column, std::size_t blocks, std::int16_t* packed) {
    for (std::size_t c = 0; c < blocks; ++c)
        for (std::size_t r = 0; r < 2 * groups; ++r)
            for (std::size_t k = 0; k < INT8_BLOCK; ++k)
                *packed++ = int4_number(V, rows[r], column + c * INT8_BLOCK + k);
}

template <int inputs>
void int4_add_packed(const std::int16_t* x, std::size_t apart, const std::int16_t* packed, std::size_t groups,
                     std::int32_t* sums) {
    for (std::size_t r = 0; r < 2 * groups; ++r)
        for (int i = 0; i < inputs; ++i)
            for (std::size_t k = 0; k < INT8_BLOCK; ++k)
                sums[i * INT8_BLOCK + k] += x[i * apart + r] * packed[r * INT8_BLOCK + k];
}

#endif

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
