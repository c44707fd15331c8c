// Butterflies (low + high, low - high) on several coordinates at once, in registers.
#pragma once

#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

// Calls `f` with the radix as a constant, so that its loops unroll into registers.
template <class F>
SPARSACT_INLINE void with_radix(std::size_t radix, F f) {
    switch (radix) {
        case 1:
            return f(std::integral_constant<int, 1>{});
        case 2:
            return f(std::integral_constant<int, 2>{});
        case 4:
            return f(std::integral_constant<int, 4>{});
        case 8:
            return f(std::integral_constant<int, 8>{});
        case 16:
            return f(std::integral_constant<int, 16>{});
        case 64:
            return f(std::integral_constant<int, 64>{});
    }
}

template <int radix, class V>
SPARSACT_INLINE void butterflies(V (&x)[radix]) {
#pragma GCC unroll 16
    for (int half = 1; half < radix; half *= 2)
#pragma GCC unroll 16
        for (int i = 0; i < radix; ++i)
            if (!(i & half)) {
                const V low = x[i], high = x[i + half];
                x[i] = low + high;
                x[i + half] = low - high;
            }
}

// All coordinates of `vectors * lanes` contiguous entries.
template <int vectors, class T>
SPARSACT_INLINE void tile(T* data) {
    // Tiles are met in order of address, but the processor's own look-ahead stops at the end of each page.
    constexpr std::size_t ahead = 2048 / sizeof(T);
    Vector<T> x[vectors];
#pragma GCC unroll 16
    for (int i = 0; i < vectors; ++i) {
        prefetch(data, i * lanes<T> + ahead);
        x[i] = lane_butterflies<lanes<T>, T>(load<Vector<T>>(data + i * lanes<T>));
    }
    butterflies<vectors>(x);
#pragma GCC unroll 16
    for (int i = 0; i < vectors; ++i) store(data + i * lanes<T>, x[i]);
}

template <class T>
struct Rows {
    T* data;
    std::size_t stride;
};

// Butterflies between `radix` rows of `from` in columns 0 <= column < width; the results go to the rows of
// `to`.
template <int radix, class V, class T>
SPARSACT_INLINE void columns(Rows<T> from, Rows<T> to, std::size_t width) {
    for (std::size_t column = 0; column < width; column += sizeof(V) / sizeof(T)) {
        V x[radix];
#pragma GCC unroll 16
        for (int i = 0; i < radix; ++i) x[i] = load<V>(from.data + i * from.stride + column);
        butterflies<radix>(x);
#pragma GCC unroll 16
        for (int i = 0; i < radix; ++i) store(to.data + i * to.stride + column, x[i]);
    }
}

// Between 64 rows, 512 bytes of each at a time by way of a buffer in the first cache: memory is read and
// written once. While the buffer is written back the next bytes are asked for: processors follow fewer rows
// by themselves.
template <class V, class T>
SPARSACT_INLINE void strips(Rows<T> rows, std::size_t width) {
    constexpr std::size_t most = 512 / sizeof(T), line = 64 / sizeof(T);
    alignas(64) T strip[64 * most];
    for (std::size_t begin = 0; begin < width; begin += most) {
        const std::size_t some = width - begin < most ? width - begin : most;
        for (int i = 0; i < 64; i += 8)
            columns<8, V, T>({rows.data + i * rows.stride + begin, rows.stride}, {strip + i * most, most},
                             some);
        for (int i = 0; i < 8; ++i) {
            for (int row = 8 * i; row < 8 * i + 8; ++row)
                for (std::size_t ahead = most; ahead < 2 * most; ahead += line)
                    prefetch(rows.data + row * rows.stride, begin + ahead);
            columns<8, V, T>({strip + i * most, 8 * most},
                             {rows.data + i * rows.stride + begin, 8 * rows.stride}, some);
        }
    }
}

template <int radix, class V, class T>
SPARSACT_INLINE void sweep_in(Rows<T> rows, std::size_t width) {
    if constexpr (radix == 64)
        strips<V>(rows, width);
    else
        columns<radix, V>(rows, rows, width);
}

template <class T>
struct Block {
    Rows<T> rows;
    std::size_t width;
};

// The first and last few columns of a sweep; returns the block between them, for wide vectors.
template <int radix, class T>
Block<T> sweep_edges(Rows<T> rows, std::size_t width) {
    using Wide = Vector<T>;
    using Narrow = Vector<T, 16>;
    const std::size_t past = reinterpret_cast<std::size_t>(rows.data) % sizeof(Wide);
    if (past == 0 || past % sizeof(Narrow) != 0) return {rows, width};
    // Off a cache line every wide access would touch two: narrow ones at both ends put the wide ones on it.
    const std::size_t head = (sizeof(Wide) - past) / sizeof(T), tail = past / sizeof(T),
                      body = width - head - tail;
    sweep_in<radix, Narrow, T>(rows, head);
    sweep_in<radix, Narrow, T>({rows.data + head + body, rows.stride}, tail);
    return {{rows.data + head, rows.stride}, body};
}

// Butterflies between `radix` rows, in place.
template <int radix, class T>
void sweep(Rows<T> rows, std::size_t width) {
    const Block<T> body = sweep_edges<radix>(rows, width);
    sweep_in<radix, Vector<T>>(body.rows, body.width);
}

}  // namespace sparsact::SPARSACT_ISA
