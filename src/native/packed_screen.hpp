// Products of many inputs, of one byte a number, with a tile of a screen's copy: its rows are packed once,
// four bytes of a row side by side, and stay in a cache. For processors with VNNI, and AMX where there is
// that too; other processors, and few inputs, read the copy by rows.
#pragma once

#include "screen_bounds.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

#if defined(SPARSACT_ISA_avx512)
constexpr std::size_t MANY = 8;          // inputs from which on it pays to pack rows of the copy
constexpr std::size_t PACKED_ROWS = 32;  // of the copy, and of digits at once in two tiles of AMX's
constexpr std::size_t VNNI_DIGITS = 8;   // rows of digits whose sums stay in registers

// Two blocks of 16 rows: for every four columns the 16 times four bytes. `rows` are 32, `width` bytes each.
inline void pack(const std::uint8_t* const* rows, std::size_t width, std::uint8_t* packed) {
    for (std::size_t block = 0; block < 2; ++block)
        for (std::size_t k = 0; k < width; k += 64) {
            Vector<std::int32_t> v[16];
            for (std::size_t r = 0; r < 16; ++r) {
                v[r] = load<Vector<std::int32_t>>(rows[16 * block + r] + k);
                prefetch(rows[16 * block + r] + k, PACKED_ROWS * width);  // of the next tile
            }
            transpose<std::int32_t>(v);
            for (std::size_t g = 0; g < 16; ++g) store(packed + 16 * (block * width + k) + 64 * g, v[g]);
        }
}

// sums (VNNI_DIGITS, PACKED_ROWS) of rows of digits.
__attribute__((target("avx512vnni"))) inline void vnni_products(const std::uint8_t* packed, std::size_t width,
                                                                const std::int8_t* digits,
                                                                std::int32_t* sums) {
    __m512i s[VNNI_DIGITS][2];
    for (auto& both : s) both[0] = both[1] = _mm512_setzero_si512();
    for (std::size_t k = 0; k < width; k += 4) {
        const __m512i first = _mm512_loadu_si512(packed + 16 * k);
        const __m512i second = _mm512_loadu_si512(packed + 16 * (width + k));
        for (std::size_t i = 0; i < VNNI_DIGITS; ++i) {
            std::int32_t four;
            std::memcpy(&four, digits + i * width + k, 4);
            const __m512i p = _mm512_set1_epi32(four);
            s[i][0] = _mm512_dpbusd_epi32(s[i][0], first, p);
            s[i][1] = _mm512_dpbusd_epi32(s[i][1], second, p);
        }
    }
    for (std::size_t i = 0; i < VNNI_DIGITS; ++i)
        for (std::size_t block = 0; block < 2; ++block)
            _mm512_storeu_si512(sums + PACKED_ROWS * i + 16 * block, s[i][block]);
}

#ifdef __linux__
// The shapes of AMX's tiles: eight of 16 rows of 64 bytes. Static, for compilers believe that a part is read.
struct alignas(64) TileShapes {
    std::uint8_t palette = 1, unused[15] = {};
    std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Tiles, as long as it lives.
class Tiles {
  public:
    __attribute__((target("amx-tile"))) Tiles() {
        static constexpr TileShapes shapes;
        _tile_loadconfig(&shapes);
    }
    __attribute__((target("amx-tile"))) ~Tiles() { _tile_release(); }
};

// The same as vnni_products, for PACKED_ROWS rows of digits.
__attribute__((target("amx-tile,amx-int8"))) inline void amx_products(const std::uint8_t* packed,
                                                                      std::size_t width,
                                                                      const std::int8_t* digits,
                                                                      std::int32_t* sums) {
    __asm__ volatile("" ::: "memory");  // for compilers that do not know that tiles read memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::size_t k = 0; k < width; k += 64) {
        _tile_loadd(4, digits + k, width);
        _tile_loadd(5, digits + 16 * width + k, width);
        _tile_loadd(6, packed + 16 * k, 64);
        _tile_loadd(7, packed + 16 * (width + k), 64);
        _tile_dpbsud(0, 4, 6);
        _tile_dpbsud(1, 4, 7);
        _tile_dpbsud(2, 5, 6);
        _tile_dpbsud(3, 5, 7);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
    _tile_stored(2, sums + 16 * PACKED_ROWS, 128);
    _tile_stored(3, sums + 16 * PACKED_ROWS + 16, 128);
    __asm__ volatile("" ::: "memory");
}
#endif

template <class F>
void for_every_packed_part(const Sketch& sketch, const Inputs& inputs, std::size_t m, std::size_t tile,
                           std::size_t last, F put) {
    static_assert(ROWS_OF_A_TILE == PACKED_ROWS && 2 * INPUTS_AT_ONCE == VNNI_DIGITS);
    const std::size_t width = sketch.width;
    Scratch<std::uint8_t> packed(PACKED_ROWS * width);
    Scratch<std::int32_t> sums(PACKED_ROWS * PACKED_ROWS);
    for (; tile < last; ++tile) {
        const std::size_t begin = tile * PACKED_ROWS, end = std::min(begin + PACKED_ROWS, sketch.s);
        const std::uint8_t* rows[PACKED_ROWS];
        for (std::size_t r = 0; r < PACKED_ROWS; ++r)
            rows[r] = sketch.rows + std::min(begin + r, end - 1) * width;
        pack(rows, width, packed.data());
        const auto put_sums = [&](std::size_t first, std::size_t count) {
            const std::int32_t* high = sums.data();
            for (std::size_t i = first; i < std::min(first + count, m); ++i, high += 2 * PACKED_ROWS) {
                const Input& input = inputs.data()[i];
                const Doubles shift = Doubles{} + 128.0 * static_cast<double>(input.sum);
                for (std::size_t r = 0; r < end - begin; r += WIDTH) {
                    const auto doubles = [&](const std::int32_t* from) -> Doubles {
                        return _mm512_cvtepi32_pd(load<__m256i>(from));  // compilers convert in halves
                    };
                    const Doubles I = 0x1p8 * doubles(high + r) + doubles(high + PACKED_ROWS + r) - shift;
                    put(i, begin + r, parts_of(sketch, begin + r, input, I));
                }
            }
        };
        std::size_t i = 0;
#ifdef __linux__
        if (2 * m >= PACKED_ROWS && current_amx()) {
            const Tiles tiles;
            for (; i + PACKED_ROWS / 2 <= m; i += PACKED_ROWS / 2) {
                amx_products(packed.data(), width, inputs.digits() + 2 * i * width, sums.data());
                put_sums(i, PACKED_ROWS / 2);
            }
        }
#endif
        for (; i < m; i += VNNI_DIGITS / 2) {
            vnni_products(packed.data(), width, inputs.digits() + 2 * i * width, sums.data());
            put_sums(i, VNNI_DIGITS / 2);
        }
    }
}
#endif

// Calls put(i, j, parts) for m inputs and all rows from tile `tile` to `last`, WIDTH rows at once; rows are
// read once for all inputs.
template <class F>
void for_every_part(const Sketch& sketch, const Inputs& inputs, std::size_t m, std::size_t tile,
                    std::size_t last, F put) {
#if defined(SPARSACT_ISA_avx512)
    if (m >= MANY && current_vnni()) return for_every_packed_part(sketch, inputs, m, tile, last, put);
#endif
    for_every_part_by_rows(sketch, inputs.data(), m, tile, last, put);
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
