// Products of up to 16 inputs with tiles of a quantised matrix by AMX, whose own tiles they are: 16 columns
// of four bytes. The same integers as of the other ways.
#pragma once

#include "int8_linear.hpp"
#include "tiles.hpp"

#if defined(SPARSACT_ISA_avx512) && defined(__linux__)
#define SPARSACT_AMX
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

// Inputs together, and from how many on it is used.
constexpr std::size_t AMX_INPUTS = 16, WORTH_AMX = 5, WORTH_INT4_AMX = 9;

inline bool amx_pays([[maybe_unused]] std::size_t inputs, [[maybe_unused]] std::size_t worth = WORTH_AMX) {
#ifdef SPARSACT_AMX
    return inputs >= worth && current_amx();
#else
    return false;
#endif
}

#ifdef SPARSACT_AMX
#define AMX_TARGET __attribute__((target("amx-tile,amx-int8,avx512vnni")))

// Registers 0 to 3 hold sums, 4 the inputs, for products of 32 codes 6 too, the others weights.
struct alignas(64) AmxShapes {
    AmxShapes(std::size_t inputs, std::size_t columns) {
        for (int tile = 0; tile < 8; ++tile) {
            const bool of_inputs = tile == 4 || (tile == 6 && columns == 32);
            bytes[tile] = of_inputs ? static_cast<std::uint16_t>(columns) : 64;
            rows[tile] = static_cast<std::uint8_t>(tile < 4 || of_inputs ? inputs : columns / 4);
        }
    }
    std::uint8_t palette = 1, start = 0, unused[14] = {};
    std::uint16_t bytes[16] = {};
    std::uint8_t rows[16] = {};
};

// The intrinsics of GCC do not say which memory they read.
inline void settle_memory() { __asm__ volatile("" ::: "memory"); }

// sums[i][t * TILE + r] for TILES_OF_ONE tiles, as `tile_products`.
AMX_TARGET inline void amx_products(std::size_t inputs, const std::uint8_t* x, std::size_t width,
                                    const std::int8_t* const* w, std::int32_t* sums) {
    static_assert(TILES_OF_ONE == 4);
    const AmxShapes shapes(inputs, 64);
    settle_memory();
    _tile_loadconfig(&shapes);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::size_t k = 0; k < width; k += 64) {
        for (int t = 0; t < 4; ++t)
            for (std::size_t line = 0; line < 64 * TILE; line += 64) prefetch(w[t], TILE * k + line + AHEAD);
        _tile_loadd(4, x + k, width);
        _tile_loadd(5, w[0] + TILE * k, 64);
        _tile_dpbusd(0, 4, 5);
        _tile_loadd(6, w[1] + TILE * k, 64);
        _tile_dpbusd(1, 4, 6);
        _tile_loadd(7, w[2] + TILE * k, 64);
        _tile_dpbusd(2, 4, 7);
        _tile_loadd(5, w[3] + TILE * k, 64);
        _tile_dpbusd(3, 4, 5);
    }
    constexpr std::size_t apart = 4 * TILE * sizeof(std::int32_t);
    _tile_stored(0, sums, apart);
    _tile_stored(1, sums + TILE, apart);
    _tile_stored(2, sums + 2 * TILE, apart);
    _tile_stored(3, sums + 3 * TILE, apart);
    _tile_release();
    settle_memory();
}

// sums[i][r] for one tile of int4 weights, as `int4_tile_products`. While some groups are unpacked, the ones
// before meet the inputs, and the sums of those before them the multipliers: no step waits for the last one.
AMX_TARGET inline void int4_amx_products(std::size_t inputs, const std::int8_t* x, std::size_t groups,
                                         const std::uint8_t* w, const std::int8_t* multipliers,
                                         std::int32_t* sums) {
    const AmxShapes shapes(inputs, 32);
    const __m512i half = _mm512_set1_epi8(15), eight = _mm512_set1_epi8(8);
    alignas(64) std::int8_t weights[2][4][32 * TILE];
    alignas(64) std::int32_t of_group[2][4][AMX_INPUTS][TILE] = {};
    __m512i totals[AMX_INPUTS];
    for (__m512i& total : totals) total = _mm512_setzero_si512();
    settle_memory();
    _tile_loadconfig(&shapes);
    for (std::size_t g = 0; g < groups + 8; g += 4) {
        if (g < groups) {
            prefetch(multipliers, g * TILE + AHEAD / 16);
            const std::uint8_t* at = w + 16 * TILE * g;
            std::int8_t* to = weights[g / 4 % 2][0];
            for (int c = 0; c < 16; ++c, at += 4 * TILE) {
                prefetch(at, AHEAD);
                const __m512i both = _mm512_loadu_si512(at);
                const __m512i low = _mm512_and_si512(both, half);
                const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), half);
                std::int8_t* place = to + 32 * TILE * (c / 4) + 4 * TILE * (c % 4);
                _mm512_store_si512(place, _mm512_sub_epi8(low, eight));
                _mm512_store_si512(place + 16 * TILE, _mm512_sub_epi8(high, eight));
            }
        }
        settle_memory();
        if (g >= 4 && g < groups + 4) {
            const std::int8_t* codes = x + 32 * (g - 4);
            const auto& of_four = weights[(g / 4 + 1) % 2];
            auto& found = of_group[(g / 4 + 1) % 2];
#define SPARSACT_PAIR(q, r)                      \
    _tile_zero(q);                               \
    _tile_zero(r);                               \
    _tile_loadd(4, codes + 32 * q, 32 * groups); \
    _tile_loadd(5, of_four[q], 64);              \
    _tile_loadd(6, codes + 32 * r, 32 * groups); \
    _tile_loadd(7, of_four[r], 64);              \
    _tile_dpbssd(q, 4, 5);                       \
    _tile_dpbssd(r, 6, 7);
            SPARSACT_PAIR(0, 1)
            SPARSACT_PAIR(2, 3)
            _tile_stored(0, found[0], 64);
            _tile_stored(1, found[1], 64);
            _tile_stored(2, found[2], 64);
            _tile_stored(3, found[3], 64);
#undef SPARSACT_PAIR
        }
        settle_memory();
        for (std::size_t q = 0; g >= 8 && q < 4; ++q) {
            const auto* by = reinterpret_cast<const __m128i*>(multipliers + (g - 8 + q) * TILE);
            const __m512i a = _mm512_maskz_mov_epi16(
                0x55555555, _mm512_maskz_cvtepi8_epi32(0xFFFF, _mm_loadu_si128(by)));  // sums fit in 16 bits
            for (std::size_t i = 0; i < AMX_INPUTS; ++i)
                totals[i] = _mm512_dpwssd_epi32(totals[i], _mm512_load_si512(of_group[g / 4 % 2][q][i]), a);
        }
    }
    _tile_release();
    for (std::size_t i = 0; i < inputs; ++i) _mm512_storeu_si512(sums + i * TILE, totals[i]);
}
#else
inline void amx_products(std::size_t, const std::uint8_t*, std::size_t, const std::int8_t* const*,
                         std::int32_t*) {}
inline void int4_amx_products(std::size_t, const std::int8_t*, std::size_t, const std::uint8_t*,
                              const std::int8_t*, std::int32_t*) {}
#endif

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
