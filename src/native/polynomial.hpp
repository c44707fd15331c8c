// Values of polynomials of multilinear monomials at many points.
//
// A monomial is multiplied from its highest coordinate down, and monomials are added in the order of the
// family: every instruction set and number of threads gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "family.hpp"
#include "isa.hpp"

namespace sparsact {

// Points as rows of real numbers (m, n), or as packed columns (n, words of m) of signs.
struct RealPoints {
    const double* rows;
    std::size_t m, n;
};

struct PackedPoints {
    const std::uint64_t* columns;
    std::size_t m, n;
};

struct Polynomials {
    Family family;
    const double* coefficients;  // (family.size, count)
    std::size_t count;
};

SPARSACT_DECLARE(
    // values (m, polynomials.count); n_threads <= 0: as many as OpenMP would take.
    void evaluate(RealPoints points, Polynomials polynomials, double* values, int n_threads);
    void evaluate(PackedPoints points, Polynomials polynomials, double* values, int n_threads);)

}  // namespace sparsact
