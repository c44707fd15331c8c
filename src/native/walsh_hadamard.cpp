// Walsh-Hadamard transform of rows of length 2^n, in place, unnormalised. n_threads <= 0: as many as OpenMP
// allows.
//
// Butterflies between entries that differ in coordinate 0, then in coordinate 1, and so on. That order
// defines the rounding, so every vector width, cache size and number of threads gives the same bits.
//
// The order matters only along the path to each entry. So we go depth first and finish a block in the nearest
// cache before its neighbour is touched, and every visit to memory joins several coordinates in registers:
//   tile   the lowest 6 to 8 coordinates: between the lanes of a vector, then between 16 vectors;
//   sweep  3 coordinates (6 in memory, on some processors) in one pass over a block. Of the smallest blocks
//          beyond the first cache it is deferred, to run between the tiles of the next such block.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

SPARSACT_DECLARE(void walsh_hadamard(float* table, std::size_t rows, std::size_t length, int n_threads);
                 void walsh_hadamard(double* table, std::size_t rows, std::size_t length, int n_threads);
                 void walsh_hadamard(std::int32_t* table, std::size_t rows, std::size_t length,
                                     int n_threads);
                 void walsh_hadamard(std::int64_t* table, std::size_t rows, std::size_t length,
                                     int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include "butterflies.hpp"
#include "deferred_sweep.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr int tile_vectors = 16;

template <class T>
constexpr std::size_t tile_length = tile_vectors * lanes<T>;

template <class T>
std::size_t top_radix(std::size_t length) {
    // Rows a power of two apart share the sets of a cache. Eight lines fit into every first cache, and in
    // memory sequential sweeps of eight rows are fast. Where a set has room for eight rows and their copies
    // (12 ways or more), 64 rows at a time save a pass over memory; with 8 ways they evict one another.
    if (current_cache_ways() >= 12 && length * sizeof(T) >= std::size_t{1} << 25) return 64;
    // What is left over goes to the bottom, where the whole block is in the first cache and sixteen rows do
    // no harm.
    const std::size_t tiles = length / tile_length<T>;
    return tiles <= 16 ? tiles : 8;
}

// Far beyond the first cache. Less would be partly in it still, and gain nothing from waiting.
template <class T>
bool in_second_cache(std::size_t length) {
    return length * sizeof(T) >= std::size_t{1} << 17;
}

// May leave its last sweep in `deferred`.
template <class T>
void transform(T* data, std::size_t length, DeferredSweep<T>& deferred) {
    if (length == tile_length<T>) {
        tile<tile_vectors>(data);
        return deferred.advance();
    }
    if (length < tile_length<T>)
        return with_radix(length / lanes<T>, [&](auto vectors) {
            if constexpr (vectors < tile_vectors) tile<vectors>(data);
        });
    const std::size_t radix = top_radix<T>(length), part = length / radix;
    for (std::size_t i = 0; i < radix; ++i) transform(data + i * part, part, deferred);
    const Rows<T> rows{data, part};
    if (in_second_cache<T>(length)) {
        if (radix == deferred.radix && !in_second_cache<T>(part)) return deferred.defer(rows, part);
        deferred.finish();
    }
    with_radix(radix, [&](auto constant) { sweep<constant>(rows, part); });
}

template <class T>
void transform(T* data, std::size_t length) {
    DeferredSweep<T> deferred;
    transform(data, length, deferred);
    deferred.finish();
}

// Rows shorter than a vector: several to a vector, and the last few alone.
template <class T>
void transform_short(T* table, std::size_t entries, std::size_t length) {
    std::size_t done = 0;
    with_radix(length, [&](auto constant) {
        if constexpr (constant < lanes<T>)
            for (; done + lanes<T> <= entries; done += lanes<T>)
                store(table + done, lane_butterflies<constant, T>(load<Vector<T>>(table + done)));
    });
    for (; done < entries; done += length)
        with_radix(length, [&](auto constant) {
            const Rows<T> entry{table + done, 1};
            if constexpr (constant < lanes<T>) columns<constant, T>(entry, entry, 1);
        });
}

template <class T>
void transform_rows(T* table, std::size_t rows, std::size_t length, int n_threads) {
    const std::size_t entries = rows * length;
    if (length < lanes<T>) return transform_short(table, entries, length);
    // A small table is done before a second thread is awake.
    n_threads = entries * sizeof(T) < std::size_t{1} << 18 ? 1 : available_threads(n_threads);
    const std::size_t tasks = n_threads == 1 ? 1 : 4 * n_threads;
    std::size_t block = length;
    while (entries / block < tasks && block > 16 * tile_length<T>) block /= 2;
    in_parallel(n_threads, entries / block, [&](std::size_t i) { transform(table + i * block, block); });
    // Where a row was cut into several blocks: the coordinates between these.
    for (std::size_t radix, part = block; part < length; part *= radix) {
        radix = length / part < 8 ? length / part : 8;
        std::size_t width = part;
        while (entries / (radix * width) < tasks && width > tile_length<T>) width /= 2;
        in_parallel(n_threads, entries / (radix * width), [&](std::size_t i) {
            const std::size_t pieces = part / width;
            T* corner = table + i / pieces * (radix * part) + i % pieces * width;
            with_radix(radix, [&](auto constant) { sweep<constant>(Rows<T>{corner, part}, width); });
        });
    }
}

}  // namespace

void walsh_hadamard(float* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }
void walsh_hadamard(double* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }
void walsh_hadamard(std::int32_t* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }
void walsh_hadamard(std::int64_t* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
void bind_for(nb::module_& module) {
    using Table = Array<T, 2>;
    module.def(
        "walsh_hadamard",
        [](Table table, int n_threads) {
            T* data = table.data();
            const std::size_t rows = table.shape(0), length = table.shape(1);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(walsh_hadamard, data, rows, length, n_threads);
        },
        nb::arg("table").noconvert(), nb::arg("n_threads"));
}

}  // namespace

SPARSACT_BINDINGS(module) {
    bind_for<float>(module);
    bind_for<double>(module);
    bind_for<std::int32_t>(module);
    bind_for<std::int64_t>(module);
}

}  // namespace sparsact

#endif
