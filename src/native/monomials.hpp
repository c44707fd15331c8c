// Monomials of a bucket's polynomial, and where its sums stand. For a number or a vector of numbers alike.
#pragma once

#include <cstddef>

#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

// A bucket's sums, in order: w z (p), w phi_a phi_b for a <= b, w phi_a y_t, w y_t**2.
struct Shape {
    std::size_t p, D, targets;

    Shape(std::size_t p, int degree, std::size_t targets)
        : p(p),
          D(degree == 0   ? 1
            : degree == 1 ? 1 + p
                          : 1 + p + p * (p + 1) / 2),
          targets(targets) {}

    std::size_t gram(std::size_t a, std::size_t b) const {
        return p + a * D - a * (a + 1) / 2 + b;
    }  // a <= b
    std::size_t cross(std::size_t a, std::size_t t) const { return gram(D, D) + a * targets + t; }
    std::size_t square(std::size_t t) const { return cross(D, t); }
    std::size_t sums() const { return square(targets); }
};

// Calls f(0, 1), f(1, v_0), ..., then f(., v_i v_j) for i <= j: monomials of at most `degree` with their
// numbers. v(j) is a coordinate.
template <class V, class Coordinate, class F>
SPARSACT_INLINE void for_each_monomial(std::size_t p, int degree, Coordinate v, F f) {
    f(std::size_t{0}, V{} + 1.0);
    std::size_t a = 1;
    if (degree >= 1)
        for (std::size_t j = 0; j < p; ++j) f(a++, v(j));
    if (degree >= 2)
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = i; j < p; ++j) f(a++, v(i) * v(j));
}

}  // namespace sparsact::SPARSACT_ISA
