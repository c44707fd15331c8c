// Number of ones in xors of two rows of words, in sets of rows; all are padded to whole groups of 8 words.
// Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef SPARSACT_ISA_portable
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t GROUP = 8;

#if defined(SPARSACT_ISA_avx512)

constexpr int LEAVES = 4;  // columns at a time against one parent: the parent is loaded once

template <int K>
void add_ones(const std::uint64_t* parent, const std::uint64_t* const* columns, std::size_t words,
              std::int64_t* const* counts) {
    __m512i ones[K] = {};
    for (std::size_t w = 0; w < words; w += GROUP) {
        const __m512i base = _mm512_load_si512(parent + w);
        for (int k = 0; k < K; ++k) {
            const __m512i parity = _mm512_xor_si512(base, _mm512_load_si512(columns[k] + w));
            ones[k] = _mm512_add_epi64(ones[k], _mm512_popcnt_epi64(parity));
        }
    }
    for (int k = 0; k < K; ++k) {
        alignas(64) std::int64_t lanes[GROUP];
        _mm512_store_si512(lanes, ones[k]);
        for (std::int64_t lane : lanes) *counts[k] += lane;
    }
}

// sums[i] = 2 sums[i], or 0 at first, plus or minus the ones of (a[w] ^ b[w]) & c[w], w = i, i + 8, ... .
[[maybe_unused]] void double_and_add_ones(const std::uint64_t* a, const std::uint64_t* b,
                                          const std::uint64_t* c, std::size_t words, bool first,
                                          bool negative, std::int64_t* sums) {
    __m512i ones = {};
    for (std::size_t w = 0; w < words; w += GROUP) {
        const __m512i chosen = _mm512_ternarylogic_epi64(_mm512_load_si512(a + w), _mm512_load_si512(b + w),
                                                         _mm512_load_si512(c + w), 0x28);
        ones = _mm512_add_epi64(ones, _mm512_popcnt_epi64(chosen));
    }
    const __m512i before = first ? __m512i{} : _mm512_load_si512(sums),
                  twice = _mm512_add_epi64(before, before);
    _mm512_store_si512(sums, negative ? _mm512_sub_epi64(twice, ones) : _mm512_add_epi64(twice, ones));
}

#elif defined(SPARSACT_ISA_avx2)

constexpr int LEAVES = 1;

// Ones of each byte, by looking up its two halves.
__m256i ones_of_bytes(__m256i x) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i high_ones = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), low));
    return _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, low)), high_ones);
}

__m256i ones_of_words(__m256i x) { return _mm256_sad_epu8(ones_of_bytes(x), _mm256_setzero_si256()); }

// A full adder of bits: a, b, c become their sum (returned in a) and the carry.
__m256i add_bits(__m256i& a, __m256i b, __m256i c) {
    const __m256i half = _mm256_xor_si256(a, b);
    const __m256i carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(half, c));
    a = _mm256_xor_si256(half, c);
    return carry;
}

// Harley-Seal: bits of eight registers are added by full adders, so that only one in eight is counted.
template <int K>
void add_ones(const std::uint64_t* parent, const std::uint64_t* const* columns, std::size_t words,
              std::int64_t* const* counts) {
    static_assert(K == 1, "one column at a time");
    const auto parity = [=](std::size_t w) {
        return _mm256_xor_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(parent + w)),
                                _mm256_load_si256(reinterpret_cast<const __m256i*>(columns[0] + w)));
    };
    __m256i ones = {}, twos = {}, fours = {}, eights = {}, rest = {};
    std::size_t w = 0;
    for (; w + 32 <= words; w += 32) {
        const __m256i twos_a = add_bits(ones, parity(w), parity(w + 4));
        const __m256i twos_b = add_bits(ones, parity(w + 8), parity(w + 12));
        const __m256i fours_a = add_bits(twos, twos_a, twos_b);
        const __m256i twos_c = add_bits(ones, parity(w + 16), parity(w + 20));
        const __m256i twos_d = add_bits(ones, parity(w + 24), parity(w + 28));
        const __m256i fours_b = add_bits(twos, twos_c, twos_d);
        eights = _mm256_add_epi64(eights, ones_of_words(add_bits(fours, fours_a, fours_b)));
    }
    for (; w < words; w += 4) rest = _mm256_add_epi64(rest, ones_of_words(parity(w)));
    __m256i total = _mm256_add_epi64(rest, _mm256_slli_epi64(eights, 3));
    total = _mm256_add_epi64(total, _mm256_slli_epi64(ones_of_words(fours), 2));
    total = _mm256_add_epi64(total, _mm256_slli_epi64(ones_of_words(twos), 1));
    total = _mm256_add_epi64(total, ones_of_words(ones));
    alignas(32) std::int64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), total);
    *counts[0] += lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

[[maybe_unused]] void double_and_add_ones(const std::uint64_t* a, const std::uint64_t* b,
                                          const std::uint64_t* c, std::size_t words, bool first,
                                          bool negative, std::int64_t* sums) {
    const auto load = [](const void* from) { return _mm256_load_si256(static_cast<const __m256i*>(from)); };
    for (std::size_t half = 0; half < GROUP; half += 4) {
        __m256i ones = {};
        for (std::size_t w = half; w < words; w += GROUP) {
            const __m256i chosen = _mm256_and_si256(_mm256_xor_si256(load(a + w), load(b + w)), load(c + w));
            ones = _mm256_add_epi64(ones, ones_of_words(chosen));
        }
        const __m256i before = first ? __m256i{} : load(sums + half),
                      twice = _mm256_add_epi64(before, before);
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums + half),
                           negative ? _mm256_sub_epi64(twice, ones) : _mm256_add_epi64(twice, ones));
    }
}

#else

constexpr int LEAVES = 1;

// Ones of each byte of a word, in that byte. Plain shifts and masks: compilers turn the loops below into
// vectors, and no processor of the baseline has a count of its own.
std::uint64_t ones_of_bytes(std::uint64_t x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
}

std::int64_t sum_of_bytes(std::uint64_t x) {
    x = (x & 0x00FF00FF00FF00FFu) + (x >> 8 & 0x00FF00FF00FF00FFu);
    return static_cast<std::int64_t>((x * 0x0001000100010001u) >> 48);
}

template <int K>
void add_ones(const std::uint64_t* parent, const std::uint64_t* const* columns, std::size_t words,
              std::int64_t* const* counts) {
    static_assert(K == 1, "one column at a time");
    constexpr std::size_t FULL = 31 * GROUP;  // 31 groups of at most 8 ones fill a byte
    const std::uint64_t* column = columns[0];
    for (std::size_t start = 0; start < words; start += FULL) {
        const std::size_t end = words < start + FULL ? words : start + FULL;
        std::uint64_t bytes[GROUP] = {};
        for (std::size_t w = start; w < end; w += GROUP)
            for (std::size_t i = 0; i < GROUP; ++i) bytes[i] += ones_of_bytes(parent[w + i] ^ column[w + i]);
        for (std::uint64_t sums : bytes) *counts[0] += sum_of_bytes(sums);
    }
}

[[maybe_unused]] void double_and_add_ones(const std::uint64_t* a, const std::uint64_t* b,
                                          const std::uint64_t* c, std::size_t words, bool first,
                                          bool negative, std::int64_t* sums) {
    std::int64_t ones[GROUP] = {};
    for (std::size_t w = 0; w < words; w += GROUP)
        for (std::size_t i = 0; i < GROUP; ++i)
            ones[i] += sum_of_bytes(ones_of_bytes((a[w + i] ^ b[w + i]) & c[w + i]));
    for (std::size_t i = 0; i < GROUP; ++i)
        sums[i] = (first ? 0 : 2 * sums[i]) + (negative ? -ones[i] : ones[i]);
}

#endif

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
