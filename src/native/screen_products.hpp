// Products <q + 128, p> of a row of bytes with the integers of a few inputs, in the widest vectors there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "screen_input.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t INPUTS_AT_ONCE = 4;
constexpr std::size_t AHEAD = 2048;  // distance in bytes of prefetches

using Integers = Vector<std::int32_t>;

constexpr std::size_t ROWS_OF_A_STEP = lanes<std::int32_t>;

// Products of rows with one input: `scale` * high + low; both fit in 32 bits for d <= 65,536.
struct Sums {
    std::int32_t high[ROWS_OF_A_STEP], low[ROWS_OF_A_STEP];
};

struct Products {
    // Of ROWS_OF_A_STEP rows with 1, 2, ... inputs.
    void (*of_rows[INPUTS_AT_ONCE])(const std::uint8_t* const* rows, std::size_t width, const Input* inputs,
                                    Sums* sums);
    double scale;
};

#if defined(SPARSACT_ISA_avx512)
template <int count>
__attribute__((target("avx512vnni"))) void products_vnni(const std::uint8_t* const* rows, std::size_t width,
                                                         const Input* inputs, Sums* sums) {
    Integers highs[count][ROWS_OF_A_STEP], lows[count][ROWS_OF_A_STEP];
    for (std::size_t r = 0; r < ROWS_OF_A_STEP; ++r) {
        __m512i high[count], low[count];
        for (int c = 0; c < count; ++c) high[c] = low[c] = _mm512_setzero_si512();
        for (std::size_t i = 0; i < width; i += 64) {
            const __m512i q = _mm512_loadu_si512(rows[r] + i);
            prefetch(rows[r] + i, AHEAD);
            for (int c = 0; c < count; ++c) {
                high[c] = _mm512_dpbusd_epi32(high[c], q, _mm512_loadu_si512(inputs[c].high + i));
                low[c] = _mm512_dpbusd_epi32(low[c], q, _mm512_loadu_si512(inputs[c].low + i));
            }
        }
        for (int c = 0; c < count; ++c)
            highs[c][r] = reinterpret_cast<Integers>(high[c]),
            lows[c][r] = reinterpret_cast<Integers>(low[c]);
    }
    for (int c = 0; c < count; ++c) {
        store(sums[c].high, lane_sums<std::int32_t>(highs[c]));
        store(sums[c].low, lane_sums<std::int32_t>(lows[c]));
    }
}
#endif

// sums plus the products of SCREEN_BLOCK bytes with as many integers.
SPARSACT_INLINE Integers with_block(Integers sums, const std::uint8_t* q, const std::int16_t* p) {
#if defined(SPARSACT_ISA_avx512)
    for (std::size_t i = 0; i < SCREEN_BLOCK; i += 32) {
        const __m512i wide =
            _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + i)));
        sums += reinterpret_cast<Integers>(_mm512_madd_epi16(wide, _mm512_loadu_si512(p + i)));
    }
#elif defined(SPARSACT_ISA_avx2)
    for (std::size_t i = 0; i < SCREEN_BLOCK; i += 16) {
        const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q + i)));
        const __m256i numbers = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i));
        sums += reinterpret_cast<Integers>(_mm256_madd_epi16(wide, numbers));
    }
#else
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < SCREEN_BLOCK; ++i) sum += q[i] * p[i];
    std::int32_t first;
    std::memcpy(&first, &sums, sizeof first);
    first += sum;
    std::memcpy(&sums, &first, sizeof first);
#endif
    return sums;
}

template <int count>
void products_widened(const std::uint8_t* const* rows, std::size_t width, const Input* inputs, Sums* sums) {
    constexpr std::size_t most =
        sizeof(Integers) > 16 ? 2048 : SCREEN_BLOCK;  // bytes whose sums fit in a lane
    Integers highs[count][ROWS_OF_A_STEP], lows[count][ROWS_OF_A_STEP];
    for (std::size_t r = 0; r < ROWS_OF_A_STEP; ++r) {
        Integers high[count] = {}, low[count] = {};
        for (std::size_t begin = 0; begin < width; begin += most) {
            Integers some[count] = {};
            for (std::size_t i = begin; i < std::min(begin + most, width); i += SCREEN_BLOCK) {
                prefetch(rows[r] + i, AHEAD);
                for (int c = 0; c < count; ++c) some[c] = with_block(some[c], rows[r] + i, inputs[c].p + i);
            }
            for (int c = 0; c < count; ++c) high[c] += some[c] >> 16, low[c] += some[c] & 0xffff;
        }
        for (int c = 0; c < count; ++c) highs[c][r] = high[c], lows[c][r] = low[c];
    }
    for (int c = 0; c < count; ++c) {
        store(sums[c].high, lane_sums<std::int32_t>(highs[c]));
        store(sums[c].low, lane_sums<std::int32_t>(lows[c]));
    }
}

// On this processor.
inline const Products& screen_products() {
#if defined(SPARSACT_ISA_avx512)
    static constexpr Products vnni = {
        {products_vnni<1>, products_vnni<2>, products_vnni<3>, products_vnni<4>}, 0x1p8};
    if (current_vnni()) return vnni;
#endif
    static constexpr Products widened = {
        {products_widened<1>, products_widened<2>, products_widened<3>, products_widened<4>}, 0x1p16};
    return widened;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
