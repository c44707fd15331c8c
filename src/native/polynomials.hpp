// Polynomials of buckets at rows of a block, one bucket a lane.
#pragma once

#include <utility>

#include "column_sums.hpp"
#include "monomials.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

template <class Number, std::size_t... L>
SPARSACT_INLINE Reals gathered(const Number* const* from, std::size_t a, std::index_sequence<L...>) {
    return Reals{static_cast<double>(from[L][a])...};
}

// Values of the polynomials of own[l] (D,) at v(j) = v[j * BLOCK + l]: each lane adds in the order of one
// alone.
template <class Number>
SPARSACT_INLINE Reals polynomials(std::size_t p, int degree, const Number* const* own, const double* v) {
    Reals total{};
    for_each_monomial<Reals>(
        p, degree, [&](std::size_t j) { return load<Reals>(v + j * BLOCK); },
        [&](std::size_t a, Reals phi) {
            total += phi * gathered(own, a, std::make_index_sequence<LANES>());
        });
    return total;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
