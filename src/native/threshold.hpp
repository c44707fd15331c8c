// The r-th largest of some values, by counting.
//
// Everything here has internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compress.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t PADDED = 64;  // buffers are padded to a multiple of this many values
constexpr std::size_t SAMPLE = 256;

template <class T>
using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// Numbers in the order of the floats that they stand for; -0 is just below 0, which no comparison of floats
// shows.
template <class T>
Integer<T> key_of(T value) {
    Integer<T> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ std::numeric_limits<Integer<T>>::max() : bits;
}

template <class T>
T of_key(Integer<T> key) {
    const Integer<T> bits = key < 0 ? key ^ std::numeric_limits<Integer<T>>::max() : key;
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline std::size_t padded(std::size_t n) { return (n + PADDED - 1) / PADDED * PADDED; }

// NaN is neither above nor below anything, so it is never counted.
template <class T>
void pad(T* values, std::size_t n) {
    std::fill(values + n, values + padded(n), std::numeric_limits<T>::quiet_NaN());
}

template <class T>
std::size_t count_at_least(const T* values, std::size_t n, T least) {
    using Counts = Vector<Integer<T>>;
    constexpr std::size_t width = lanes<T>;
    Counts counts[4] = {};
    for (std::size_t i = 0; i < padded(n); i += 4 * width)
        for (std::size_t v = 0; v < 4; ++v)
            counts[v] += load<Vector<T>>(values + i + v * width) >= least ? Counts{} + 1 : Counts{};
    alignas(64) Integer<T> each[width];
    store(each, static_cast<Counts>((counts[0] + counts[1]) + (counts[2] + counts[3])));
    std::size_t count = 0;
    for (const Integer<T> lane : each) count += static_cast<std::size_t>(lane);
    return count;
}

// The smallest of n values (padded) that are no less than `least`.
template <class T>
T smallest_from(const T* values, std::size_t n, T least) {
    using V = Vector<T>;
    constexpr std::size_t width = lanes<T>;
    const V infinity = V{} + std::numeric_limits<T>::infinity();
    V smallest[4] = {infinity, infinity, infinity, infinity};
    for (std::size_t i = 0; i < padded(n); i += 4 * width)
        for (std::size_t v = 0; v < 4; ++v) {
            const V here = load<V>(values + i + v * width), large = here >= least ? here : infinity;
            smallest[v] = large < smallest[v] ? large : smallest[v];
        }
    alignas(64) T each[4 * width];
    for (std::size_t v = 0; v < 4; ++v) store(each + v * width, smallest[v]);
    return *std::min_element(each, each + 4 * width);
}

// The r-th largest of n values (padded), which lies in [low, high]: bisection of the floats between.
template <class T>
T kth_largest(const T* values, std::size_t n, std::size_t r, T low, T high) {
    Integer<T> least = key_of(low), most = key_of(high);  // the answer's key is one of these or between
    while (least < most) {
        // The mean, rounded up, of numbers whose sum may overflow.
        const Integer<T> middle = (least | most) - ((least ^ most) >> 1);
        const T candidate = of_key<T>(middle);
        const std::size_t count = count_at_least(values, n, candidate);
        if (count == r) return smallest_from(values, n, candidate);
        if (count > r)
            least = middle;
        else
            most = middle - 1;
    }
    return of_key<T>(least);
}

template <class T>
struct Threshold {
    T value;               // the k-th largest
    std::size_t at_least;  // values that are no less: k, or more where some are equal
};

// The k-th largest of n values (padded). A sample says between which two values it should be found; one pass
// writes these out, and bisection finds it among them. Where the sample misled, the pass is made once more,
// on the other side.
template <class T>
Threshold<T> threshold_of(const T* values, std::size_t n, std::size_t k, T* between) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    T low = -infinity, high = infinity;
    if (n >= 4 * SAMPLE) {
        alignas(64) T sample[SAMPLE];
        for (std::size_t i = 0; i < SAMPLE; ++i) sample[i] = values[i * n / SAMPLE];
        const double share = static_cast<double>(k) / static_cast<double>(n);
        const double expected = share * SAMPLE, margin = 1 + 2.5 * std::sqrt(expected * (1 - share));
        if (expected - margin >= 1)
            high = kth_largest(sample, SAMPLE, static_cast<std::size_t>(expected - margin), low, high);
        if (expected + margin <= SAMPLE)
            low = kth_largest(sample, SAMPLE, static_cast<std::size_t>(expected + margin), low, high);
    } else {
        const T value = kth_largest(values, n, k, low, high);
        return {value, count_at_least(values, n, value)};
    }
    Gathered found = gather_between(values, n, low, high, between);
    if (k <= found.above) {
        low = high;
        high = infinity;
        found = gather_between(values, n, low, high, between);
    } else if (k > found.above + found.inside) {
        high = low;
        low = -infinity;
        found = gather_between(values, n, low, high, between);
    }
    pad(between, found.inside);
    const T value = kth_largest(between, found.inside, k - found.above, low, high);
    return {value, found.above + count_at_least(between, found.inside, value)};
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
