// Ridge polynomials of as many buckets as a vector has lanes: one Cholesky factor each, side by side.
// Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <cmath>

#include "column_sums.hpp"
#include "monomials.hpp"
#include "scratch.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

SPARSACT_INLINE Reals square_root(Reals x) {
    double lane[LANES];
    store(lane, x);
    for (double& number : lane) number = std::sqrt(number);
    return load<Reals>(lane);
}

class BucketSolver {
  public:
    BucketSolver(Shape shape, double alpha)
        : shape_(shape),
          alpha_(alpha),
          sums_(shape.sums()),
          mean_(shape.D),
          coefficients_(shape.D * shape.targets),
          residual_(shape.targets) {}

    // Sums of the buckets, one a lane; solve() writes over them.
    Reals& sum(std::size_t k) { return sums_[k]; }

    // Sums of the buckets whose numbers are bucket(0), bucket(1), ..., LANES of them.
    template <class Bucket>
    void read(const double* sums, Bucket bucket) {
        const std::size_t n_sums = shape_.sums();
        const double* from[LANES];
        for (std::size_t l = 0; l < LANES; ++l) from[l] = sums + bucket(l) * n_sums;
        double lane[LANES];
        for (std::size_t k = 0; k < n_sums; ++k) {
            for (std::size_t l = 0; l < LANES; ++l) lane[l] = from[l][k];
            sums_[k] = load<Reals>(lane);
        }
    }

    const Reals& coefficient(std::size_t a, std::size_t t) const {
        return coefficients_[a * shape_.targets + t];
    }
    const Reals& residual(std::size_t t) const { return residual_[t]; }

    // The constant is not penalised; a pivot that rounding has eaten is left out: its coefficient is 0.
    void solve() {
        const Reals total = gram(0, 0), one = Reals{} + 1.0;
        const Reals scale = total > 0.0 ? one / total : Reals{};
        for (std::size_t a = 0; a < shape_.D; ++a) mean_[a] = gram(0, a) * scale;
        for (std::size_t t = 0; t < shape_.targets; ++t) coefficients_[t] = cross(0, t) * scale;
        for (std::size_t a = 1; a < shape_.D; ++a)
            for (std::size_t t = 0; t < shape_.targets; ++t) {
                cross(a, t) -= gram(0, a) * coefficients_[t];
                slope(a, t) = cross(a, t);
            }
        factor();
        substitute();
        finish();
    }

  private:
    static constexpr double ROUNDING = 1e-9;

    Reals& gram(std::size_t a, std::size_t b) { return sums_[shape_.gram(a, b)]; }
    Reals& cross(std::size_t a, std::size_t t) { return sums_[shape_.cross(a, t)]; }
    Reals& slope(std::size_t a, std::size_t t) { return coefficients_[a * shape_.targets + t]; }
    // Entry (a, b) of the lower factor stands where that of the Gram matrix stood; a pivot left out is 0
    // there.
    Reals& factor(std::size_t a, std::size_t b) { return gram(b, a); }

    // Rounding moves a pivot by about epsilon / lambda of its diagonal entry, lambda the least eigenvalue of
    // the correlations before it: at least about the product of the pivots' shares, and at least the
    // penalty's.
    void factor() {
        const Reals one = Reals{} + 1.0;
        Reals largest{}, shares = one;
        for (std::size_t j = 1; j < shape_.D; ++j) largest = gram(j, j) > largest ? gram(j, j) : largest;
        const Reals penalty = alpha_ > 0.0 ? alpha_ / (largest + alpha_) : Reals{};
        for (std::size_t j = 1; j < shape_.D; ++j) {
            const Reals whole = gram(j, j) + alpha_, least = shares > penalty ? shares : penalty;
            Reals pivot = (gram(j, j) - gram(0, j) * mean_[j]) + alpha_;
            for (std::size_t i = 1; i < j; ++i) pivot -= factor(j, i) * factor(j, i);
            const Reals floor = ROUNDING * whole;
            const auto kept = pivot * least > (floor > 0.0 ? floor : Reals{});
            shares *= kept ? pivot / whole : one;
            const Reals root = square_root(kept ? pivot : one);
            factor(j, j) = kept ? root : Reals{};
            for (std::size_t r = j + 1; r < shape_.D; ++r) {
                Reals entry = gram(j, r) - gram(0, r) * mean_[j];
                for (std::size_t i = 1; i < j; ++i) entry -= factor(r, i) * factor(j, i);
                factor(r, j) = kept ? entry / root : Reals{};
            }
        }
    }

    SPARSACT_INLINE void divide(std::size_t j) {
        const Reals root = factor(j, j), one = Reals{} + 1.0;
        for (std::size_t t = 0; t < shape_.targets; ++t)
            slope(j, t) = root > 0.0 ? slope(j, t) / (root > 0.0 ? root : one) : Reals{};
    }

    void substitute() {
        const std::size_t D = shape_.D, targets = shape_.targets;
        for (std::size_t j = 1; j < D; ++j) {
            for (std::size_t i = 1; i < j; ++i)
                for (std::size_t t = 0; t < targets; ++t) slope(j, t) -= factor(j, i) * slope(i, t);
            divide(j);
        }
        for (std::size_t j = D - 1; j > 0; --j) {
            for (std::size_t i = j + 1; i < D; ++i)
                for (std::size_t t = 0; t < targets; ++t) slope(j, t) -= factor(i, j) * slope(i, t);
            divide(j);
        }
    }

    void finish() {
        for (std::size_t t = 0; t < shape_.targets; ++t) {
            const Reals level = coefficients_[t];
            Reals left = sums_[shape_.square(t)] - cross(0, t) * level, constant = level;
            for (std::size_t a = 1; a < shape_.D; ++a) {
                constant -= mean_[a] * slope(a, t);
                left -= slope(a, t) * (cross(a, t) + alpha_ * slope(a, t));
            }
            coefficients_[t] = constant;
            residual_[t] = left < 0.0 ? Reals{} : left;
        }
    }

    Shape shape_;
    double alpha_;
    Scratch<Reals> sums_, mean_, coefficients_, residual_;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
