// The largest outputs of a layer, among the outputs that a screen leaves in doubt; see
// sparsact/inference/certified_top_k.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "neurons.hpp"
#include "screen.hpp"

namespace sparsact {

// What bounds are widened by so that they hold for outputs as they are rounded.
struct Widening {
    double rounding, relative, least;  // of an input's size, of the sizes of all terms, and of nothing
    double limit;                      // the size of an input above which nothing is known
};

// Units of an input that may be among its k largest, in order, and their outputs; none if nothing is known.
template <class T>
struct InDoubt {
    bool known = false;
    std::vector<std::int64_t> units;
    std::vector<T> outputs;
};

SPARSACT_DECLARE(template <class T> std::vector<InDoubt<T>> in_doubt(const Sketch& sketch,
                                                                     const Widening& widening, Units<T, T> W,
                                                                     const T* X, std::size_t m, std::size_t k,
                                                                     int n_threads);

                 // values and indices (m, k), and how many inputs are left unknown: index -1.
                 template <class T>
                 std::size_t largest_top_k(const Sketch& sketch, const Widening& widening, Units<T, T> W,
                                           const T* X, std::size_t m, std::size_t k, T* values,
                                           std::int64_t* indices, int n_threads);

                 // out (m, s): the outputs in doubt, and -infinity elsewhere.
                 template <class T>
                 std::size_t largest_fill(const Sketch& sketch, const Widening& widening, Units<T, T> W,
                                          const T* X, std::size_t m, std::size_t k, T* out, int n_threads);)

}  // namespace sparsact
