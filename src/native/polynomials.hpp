// Polynomials of buckets at rows of a block, one bucket a lane.
#pragma once

#include "column_sums.hpp"
#include "monomials.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

// Coefficients of several buckets, a vector of them for one monomial after another.
template <class Number>
class Coefficients {
  public:
    SPARSACT_INLINE Coefficients(const Number* const* own, std::size_t n) : own_(own), n_(n) {}

    SPARSACT_INLINE Reals at(std::size_t a) {
        if (a % LANES == 0) fill(a);
        return block_[a % LANES];
    }

  private:
    SPARSACT_INLINE void fill(std::size_t a) {
        if (a + LANES <= n_) {
            for (std::size_t l = 0; l < LANES; ++l) block_[l] = widened(own_[l] + a);
            transpose<double>(block_);
        } else {
            double lane[LANES];
            for (std::size_t k = 0; k < n_ - a; ++k) {
                for (std::size_t l = 0; l < LANES; ++l) lane[l] = static_cast<double>(own_[l][a + k]);
                block_[k] = load<Reals>(lane);
            }
        }
    }

    static SPARSACT_INLINE Reals widened(const double* from) { return load<Reals>(from); }
    static SPARSACT_INLINE Reals widened(const float* from) {
        double lane[LANES];
        for (std::size_t l = 0; l < LANES; ++l) lane[l] = static_cast<double>(from[l]);
        return load<Reals>(lane);
    }

    const Number* const* own_;
    std::size_t n_;
    Reals block_[LANES];
};

// Values of the polynomials of own[l] (D,) at v(j), lane by lane: each adds in the order of one alone.
template <class Number, class Coordinate>
SPARSACT_INLINE Reals polynomials(std::size_t p, int degree, const Number* const* own, Coordinate v) {
    Reals total{};
    Coefficients<Number> coefficients(own, Shape::n_monomials(p, degree));
    for_each_monomial<Reals>(p, degree, v,
                             [&](std::size_t a, Reals phi) { total += phi * coefficients.at(a); });
    return total;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
