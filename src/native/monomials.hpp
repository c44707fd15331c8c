// Monomials of a bucket's polynomial, and where its sums stand. For a number or a vector of numbers alike.
#pragma once

#include <cstddef>

#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

// A bucket's sums, in order: w z (p); w times each monomial of at most twice the degree, whose first D are the
// features phi; w phi_a y_t; w y_t**2. Products of two features are such monomials, each kept once.
struct Shape {
    std::size_t p, D, targets, monomials;

    Shape(std::size_t p, int degree, std::size_t targets)
        : p(p), D(n_monomials(p, degree)), targets(targets), monomials(n_monomials(p, 2 * degree)) {}

    std::size_t monomial(std::size_t k) const { return p + k; }
    std::size_t cross(std::size_t a, std::size_t t) const { return p + monomials + a * targets + t; }
    std::size_t square(std::size_t t) const { return cross(D, t); }
    std::size_t sums() const { return square(targets); }

    // Monomials of at most `degree` in p coordinates.
    static std::size_t n_monomials(std::size_t p, int degree) {
        std::size_t n = 1;
        for (int k = 1; k <= degree; ++k) n = n * (p + k) / k;
        return n;
    }
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

// Calls f(j, source, first, count) for the monomials of degree k = 2, ..., `degree`: those at first, ...,
// first + count - 1 are v_j times those at source, ..., of degree k - 1 and of coordinates from j on. Each is
// a product of coordinates in ascending order.
template <class F>
SPARSACT_INLINE void for_each_product(std::size_t p, int degree, F f) {
    std::size_t at = 1 + p;
    for (int k = 2; k <= degree; ++k) {
        const std::size_t end = at;
        for (std::size_t j = 0; j < p; ++j) {
            std::size_t count = 1;  // of degree k - 1 in p - j coordinates
            for (int i = 1; i < k; ++i) count = count * (p - j + i - 1) / i;
            f(j, end - count, at, count);
            at += count;
        }
    }
}

}  // namespace sparsact::SPARSACT_ISA
