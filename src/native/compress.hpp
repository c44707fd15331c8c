// Writing out the lanes of some vectors that pass a test, side by side.
//
// Everything here has internal linkage: each instruction set keeps its own copy.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef SPARSACT_ISA_avx512
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

#ifdef SPARSACT_ISA_avx512

inline __m512 register_of(const float* x) { return _mm512_loadu_ps(x); }
inline __m512d register_of(const double* x) { return _mm512_loadu_pd(x); }
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
inline std::size_t ones(unsigned mask) { return static_cast<std::size_t>(__builtin_popcount(mask)); }

template <class T>
Gathered gather_between(const T* from, std::size_t n, T low, T high, T* to) {
    constexpr std::size_t step = 64 / sizeof(T);
    Gathered found{0, 0};
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const auto x = register_of(from + i);
        const unsigned over = above(x, high), inside = at_least(x, low) & ~over;
        put(to + found.inside, inside, x);
        found.inside += ones(inside);
        found.above += ones(over);
    }
    return gather_between_each(from, i, n, low, high, to, found);
}

template <class T>
void places_at_least(const T* from, std::size_t n, T least, std::int64_t* to, std::size_t count) {
    const __m512i first = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    std::size_t i = 0, found = 0;
    for (; i + 64 / sizeof(T) <= n; i += 64 / sizeof(T)) {
        const unsigned chosen = at_least(register_of(from + i), least);
        for (std::size_t half = 0; half < 8 / sizeof(T); ++half) {  // eight places fill a register
            const auto eight = static_cast<__mmask8>(chosen >> (8 * half));
            const __m512i places =
                _mm512_add_epi64(first, _mm512_set1_epi64(static_cast<long long>(i + 8 * half)));
            _mm512_mask_compressstoreu_epi64(to + found, eight, places);
            found += ones(eight);
        }
    }
    places_at_least_each(from, i, n, least, to, count, found);
}

#else

template <class T>
Gathered gather_between(const T* from, std::size_t n, T low, T high, T* to) {
    return gather_between_each(from, 0, n, low, high, to, Gathered{0, 0});
}

template <class T>
void places_at_least(const T* from, std::size_t n, T least, std::int64_t* to, std::size_t count) {
    places_at_least_each(from, 0, n, least, to, count);
}

#endif

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
