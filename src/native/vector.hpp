// The widest vectors of the instruction set that this translation unit is compiled for: one source for all
// widths.
//
// GCC and Clang do arithmetic on such types directly. Everything here lives in the namespace of the
// instruction set: otherwise the linker would keep one copy of each template, perhaps one that this processor
// cannot run.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "builtins.hpp"

#define SPARSACT_INLINE inline

#if defined(__has_builtin) && !defined(SPARSACT_PLAIN_CXX)
#if __has_builtin(__builtin_shufflevector)
#define SPARSACT_VECTORS
#undef SPARSACT_INLINE
#define SPARSACT_INLINE inline __attribute__((always_inline))
#endif
#endif

namespace sparsact::SPARSACT_ISA {

#if defined(SPARSACT_ISA_avx512)
constexpr std::size_t widest_bytes = 64;
#elif defined(SPARSACT_ISA_avx2)
constexpr std::size_t widest_bytes = 32;
#else
constexpr std::size_t widest_bytes = 16;
#endif

#ifdef SPARSACT_VECTORS
template <class T, std::size_t bytes>
struct vector_of {
    typedef T type __attribute__((vector_size(bytes)));
};
#else
// An old compiler: vectors of one lane, right if slower.
template <class T, std::size_t bytes>
struct vector_of {
    using type = T;
};
#endif

template <class T, std::size_t bytes = widest_bytes>
using Vector = typename vector_of<T, bytes>::type;

template <class T>
constexpr int lanes = sizeof(Vector<T>) / sizeof(T);

// NumPy promises 16 bytes of alignment, not 64, so loads and stores assume none.
template <class V, class T>
SPARSACT_INLINE V load(const T* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class V, class T>
SPARSACT_INLINE void store(T* to, V v) {
    std::memcpy(to, &v, sizeof v);
}

// A hint only: data[ahead] need not exist.
template <class T>
SPARSACT_INLINE void prefetch([[maybe_unused]] const T* data, [[maybe_unused]] std::size_t ahead) {
#ifdef SPARSACT_VECTORS
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::size_t>(data) + ahead * sizeof(T)));
#endif
}

#ifdef SPARSACT_VECTORS
template <int half, class T, int... i>
SPARSACT_INLINE Vector<T> lane_butterfly(Vector<T> v, std::integer_sequence<int, i...>) {
    const Vector<T> other = __builtin_shufflevector(v, v, (i ^ half)...);
    // Lane by lane low + high or low - high. For floats as one product with +-1, which is exact: the compiler
    // may fuse it with the addition and change no bit.
    if constexpr (std::is_floating_point_v<T>)
        return other + v * Vector<T>{T(i & half ? -1 : 1)...};
    else
        return Vector<T>{T(i & half ? -1 : 0)...} != 0 ? other - v : other + v;
}
#endif

// Butterflies between lanes 1 apart, then 2 and so on, within every `length` lanes of a vector.
template <int length, class T, int half = 1>
SPARSACT_INLINE Vector<T> lane_butterflies(Vector<T> v) {
#ifdef SPARSACT_VECTORS
    if constexpr (half < length)
        return lane_butterflies<length, T, 2 * half>(
            lane_butterfly<half, T>(v, std::make_integer_sequence<int, lanes<T>>{}));
#endif
    return v;
}

#ifdef SPARSACT_VECTORS
template <int half, class T, int... i>
SPARSACT_INLINE void exchange(Vector<T>& one, Vector<T>& other, std::integer_sequence<int, i...>) {
    constexpr int n = lanes<T>;
    const Vector<T> first = one, second = other;
    one = __builtin_shufflevector(first, second, (i & half ? n + i - half : i)...);
    other = __builtin_shufflevector(first, second, (i & half ? n + i : i + half)...);
}
#endif

// Sums of the lanes of v[0], v[1], ..., lane by lane.
template <class T, int half = 1>
SPARSACT_INLINE Vector<T> lane_sums(Vector<T> (&v)[lanes<T>]) {
#ifdef SPARSACT_VECTORS
    if constexpr (half < lanes<T>) {
        for (int k = 0; k < lanes<T>; k += 2 * half) {
            exchange<half, T>(v[k], v[k + half], std::make_integer_sequence<int, lanes<T>>{});
            v[k] += v[k + half];
        }
        return lane_sums<T, 2 * half>(v);
    }
#endif
    return v[0];
}

// Lane l of vector k becomes lane k of vector l.
template <class T, int half = 1>
SPARSACT_INLINE void transpose([[maybe_unused]] Vector<T> (&v)[lanes<T>]) {
#ifdef SPARSACT_VECTORS
    if constexpr (half < lanes<T>) {
        for (int k = 0; k < lanes<T>; ++k)
            if (!(k & half))
                exchange<half, T>(v[k], v[k + half], std::make_integer_sequence<int, lanes<T>>{});
        transpose<T, 2 * half>(v);
    }
#endif
}

}  // namespace sparsact::SPARSACT_ISA
