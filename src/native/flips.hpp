// Change of a network's value as each coordinate of a point is flipped, from the pre-activations at the
// point.
//
// Units that no flip switches on add nothing and are skipped; units that no flip switches off are linear: one
// product and one sum a weight. Only units nearer to 0 than one flip can move them are computed twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"
#include "sparse_units.hpp"

namespace sparsact {

struct PointsAndUnits {
    const std::int8_t* X;     // (m, n), signs
    const double* Z;          // (m, s), pre-activations
    const double *u, *reach;  // (s,): no flip moves unit j by more than reach[j]
    std::size_t m, n, s;
};

SPARSACT_DECLARE(
    // differences (m, n) of h(x) - h(x with coordinate i flipped); n_threads <= 0: as many as OpenMP would
    // take.
    void flip_differences(PointsAndUnits points, const double* W, double* differences, int n_threads);
    void flip_differences(PointsAndUnits points, SparseUnits W, double* differences, int n_threads);)

}  // namespace sparsact
