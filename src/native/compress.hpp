// Writing out the lanes of some vectors that pass a test, side by side.
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

// Values in [low, high] of `from` (n,) go to `to`, which has room for a register more; how many they are, and
// how many values are above `high`.
struct Gathered {
    std::size_t inside, above;
};

template <class T>
Gathered gather_between_each(const T* from, std::size_t begin, std::size_t n, T low, T high, T* to,
                             Gathered so_far) {
    for (std::size_t i = begin; i < n; ++i) {
        const T value = from[i];
        to[so_far.inside] = value;  // kept only if the next line counts it: no branch to predict
        so_far.inside += (value >= low) & (value <= high);
        so_far.above += value > high;
    }
    return so_far;
}

// Places of the values of `from` (n,) that are at least `least`.
template <class T>
void places_at_least_each(const T* from, std::size_t begin, std::size_t n, T least, std::int64_t* to,
                          std::size_t count, std::size_t found = 0) {
    for (std::size_t i = begin; found < count && i < n; ++i) {
        to[found] = static_cast<std::int64_t>(i);
        found += from[i] >= least;
    }
}

#if defined(SPARSACT_ISA_avx512)

constexpr std::size_t BYTES = 64;
inline __m512 lanes_of(const float* x) { return _mm512_loadu_ps(x); }
inline __m512d lanes_of(const double* x) { return _mm512_loadu_pd(x); }
inline unsigned at_least(__m512 x, float y) { return _mm512_cmp_ps_mask(x, _mm512_set1_ps(y), _CMP_GE_OQ); }
inline unsigned at_least(__m512d x, double y) { return _mm512_cmp_pd_mask(x, _mm512_set1_pd(y), _CMP_GE_OQ); }
inline unsigned above(__m512 x, float y) { return _mm512_cmp_ps_mask(x, _mm512_set1_ps(y), _CMP_GT_OQ); }
inline unsigned above(__m512d x, double y) { return _mm512_cmp_pd_mask(x, _mm512_set1_pd(y), _CMP_GT_OQ); }
inline void put(float* to, unsigned chosen, __m512 x) {
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(static_cast<__mmask16>(chosen), x));
}
inline void put(double* to, unsigned chosen, __m512d x) {
    _mm512_storeu_pd(to, _mm512_maskz_compress_pd(static_cast<__mmask8>(chosen), x));
}
inline void put_places(std::int64_t* to, unsigned chosen, std::size_t first) {  // of eight lanes
    const __m512i place = _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                           _mm512_set1_epi64(static_cast<long long>(first)));
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(static_cast<__mmask8>(chosen), place));
}

#elif defined(SPARSACT_ISA_avx2)

constexpr std::size_t BYTES = 32;

// For each choice of eight lanes, the lanes chosen, in order; then whatever.
struct Orders {
    std::uint8_t lane[256][8];
    constexpr Orders() : lane{} {
        for (unsigned chosen = 0; chosen < 256; ++chosen)
            for (unsigned from = 0, to = 0; from < 8; ++from)
                if (chosen >> from & 1) lane[chosen][to++] = static_cast<std::uint8_t>(from);
    }
};
constexpr Orders ORDERS;
constexpr std::uint8_t TWICE[16] = {0x00, 0x03, 0x0c, 0x0f, 0x30, 0x33, 0x3c, 0x3f,  // each bit two times
                                    0xc0, 0xc3, 0xcc, 0xcf, 0xf0, 0xf3, 0xfc, 0xff};

inline __m256i order_of(unsigned chosen) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(ORDERS.lane[chosen])));
}
inline __m256 lanes_of(const float* x) { return _mm256_loadu_ps(x); }
inline __m256d lanes_of(const double* x) { return _mm256_loadu_pd(x); }
inline unsigned at_least(__m256 x, float y) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(y), _CMP_GE_OQ)));
}
inline unsigned at_least(__m256d x, double y) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_set1_pd(y), _CMP_GE_OQ)));
}
inline unsigned above(__m256 x, float y) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(y), _CMP_GT_OQ)));
}
inline unsigned above(__m256d x, double y) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_set1_pd(y), _CMP_GT_OQ)));
}
inline void put(float* to, unsigned chosen, __m256 x) {
    _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(x, order_of(chosen)));
}
inline void put(double* to, unsigned chosen, __m256d x) {
    const __m256 halves = _mm256_permutevar8x32_ps(_mm256_castpd_ps(x), order_of(TWICE[chosen]));
    _mm256_storeu_pd(to, _mm256_castps_pd(halves));
}
inline void put_places(std::int64_t* to, unsigned chosen, std::size_t first) {  // of eight lanes
    const __m256i order = order_of(chosen), start = _mm256_set1_epi64x(static_cast<long long>(first));
    const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(order));
    const __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(order, 1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_add_epi64(low, start));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 4), _mm256_add_epi64(high, start));
}

#endif

#ifdef SPARSACT_ISA_portable

template <class T>
Gathered gather_between(const T* from, std::size_t n, T low, T high, T* to) {
    return gather_between_each(from, 0, n, low, high, to, Gathered{0, 0});
}

template <class T>
void places_at_least(const T* from, std::size_t n, T least, std::int64_t* to, std::size_t count) {
    places_at_least_each(from, 0, n, least, to, count);
}

#else

inline std::size_t ones(unsigned chosen) { return static_cast<std::size_t>(__builtin_popcount(chosen)); }

template <class T>
Gathered gather_between(const T* from, std::size_t n, T low, T high, T* to) {
    constexpr std::size_t step = BYTES / sizeof(T);
    Gathered found{0, 0};
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const auto x = lanes_of(from + i);
        const unsigned over = above(x, high), inside = at_least(x, low) & ~over;
        put(to + found.inside, inside, x);
        found.inside += ones(inside);
        found.above += ones(over);
    }
    return gather_between_each(from, i, n, low, high, to, found);
}

template <class T>
void places_at_least(const T* from, std::size_t n, T least, std::int64_t* to, std::size_t count) {
    constexpr std::size_t step = BYTES / sizeof(T);
    std::size_t i = 0, found = 0;
    for (; i + 16 <= n; i += 16) {
        unsigned chosen = 0;
        for (std::size_t part = 0; part < 16; part += step)
            chosen |= at_least(lanes_of(from + i + part), least) << part;
        if (found + 16 <= count) {  // room for what `put_places` writes past the chosen ones
            put_places(to + found, chosen & 0xff, i);
            put_places(to + found + ones(chosen & 0xff), chosen >> 8, i + 8);
            found += ones(chosen);
        } else
            for (; chosen && found < count; chosen &= chosen - 1)
                to[found++] = static_cast<std::int64_t>(i) + __builtin_ctz(chosen);
    }
    places_at_least_each(from, i, n, least, to, count, found);
}

#endif

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
