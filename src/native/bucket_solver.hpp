// Ridge polynomials of as many buckets as a vector has lanes: one Cholesky factor each, side by side.
// Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

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

// places (D * (D + 1) / 2,): which monomial each product of features a <= b is.
inline void find_products(std::size_t p, std::size_t D, int degree, std::uint32_t* places) {
    constexpr std::size_t MOST = 4;  // coordinates of a product
    const Products products(p, 2 * degree);
    // Times v_j, ahead of all coordinates that a monomial has: to one a degree higher.
    const auto times = [&](std::size_t degrees, std::size_t j, std::size_t monomial) {
        const Product& step = products.begin()[(degrees - 1) * p + j];
        return step.first + (monomial - step.source);
    };
    const auto coordinates = [&](std::size_t a, std::size_t* own) {
        if (a == 0) return own;
        if (a <= p) return *own = a - 1, own + 1;
        std::size_t i = 0, rest = a - 1 - p;
        for (; rest >= p - i; ++i) rest -= p - i;
        own[0] = i;
        own[1] = i + rest;
        return own + 2;
    };
    for (std::size_t a = 0; a < D; ++a)
        for (std::size_t b = a; b < D; ++b) {
            std::size_t one[2], other[2], both[MOST];
            std::size_t* end = std::merge(one, coordinates(a, one), other, coordinates(b, other), both);
            std::size_t place = end == both ? 0 : 1 + *--end, degrees = 0;
            while (end != both) place = times(++degrees, *--end, place);
            *places++ = static_cast<std::uint32_t>(place);
        }
}

class BucketSolver {
  public:
    BucketSolver(Shape shape, int degree, double alpha)
        : shape_(shape),
          alpha_(alpha),
          places_(shape.D * (shape.D + 1) / 2),
          sums_(shape.values()),
          gram_(shape.D * (shape.D + 1) / 2),
          mean_(shape.D),
          coefficients_(shape.D * shape.targets),
          residual_(shape.targets) {
        find_products(shape.p, shape.D, degree, places_.data());
    }

    // Sums of the buckets, one a lane; positions, the first p of them, are not read.
    Reals& sum(std::size_t k) { return sums_[k]; }

    // Sums of the buckets at from[0], from[1], ..., LANES of them.
    void read(const double* const* from) {
        const std::size_t n = shape_.values();
        std::size_t k = shape_.p;
        for (; k + LANES <= n; k += LANES) {
            Reals block[LANES];
            for (std::size_t l = 0; l < LANES; ++l) block[l] = load<Reals>(from[l] + k);
            transpose<double>(block);
            for (std::size_t l = 0; l < LANES; ++l) sums_[k + l] = block[l];
        }
        double lane[LANES];
        for (; k < n; ++k) {
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
        for (std::size_t k = 0; k < shape_.D * (shape_.D + 1) / 2; ++k)
            gram_[k] = sums_[shape_.monomial(places_[k])];
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

    Reals& gram(std::size_t a, std::size_t b) {  // a <= b
        return gram_[a * shape_.D - a * (a + 1) / 2 + b];
    }
    Reals& cross(std::size_t a, std::size_t t) { return sums_[shape_.cross(a, t)]; }
    Reals& slope(std::size_t a, std::size_t t) { return coefficients_[a * shape_.targets + t]; }

    // Entry (a, b) of the lower factor stands where entry (b, a) of the Gram matrix stood, and on the
    // diagonal the inverse of the factor's: 0 for a pivot that is left out.
    //
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
            eliminate(j);
            const Reals pivot = gram(j, j), floor = ROUNDING * whole;
            const auto kept = pivot * least > (floor > 0.0 ? floor : Reals{});
            shares *= kept ? pivot / whole : one;
            const Reals inverse = kept ? one / square_root(kept ? pivot : one) : Reals{};
            gram(j, j) = inverse;
            Reals* row = &gram(j, j);
            for (std::size_t r = 1; r < shape_.D - j; ++r) row[r] = kept ? row[r] * inverse : Reals{};
        }
    }

    // Takes what earlier pivots explain from row j, several entries at a time: each waits for its own alone.
    void eliminate(std::size_t j) {
        std::size_t r = j;
        const auto tiles = [&](auto constant) {
            constexpr std::size_t width = decltype(constant)::value;
            for (; r + width <= shape_.D; r += width) {
                Reals entry[width];
                Reals* own = &gram(j, j) + (r - j);
                const Reals* mean = &gram(0, r);
                for (std::size_t k = 0; k < width; ++k) entry[k] = own[k] - mean[k] * mean_[j];
                if (r == j) entry[0] += alpha_;
                const Reals* earlier = &gram(1, r);
                for (std::size_t i = 1; i < j; ++i) {
                    const Reals by = *(earlier - (r - j));
                    for (std::size_t k = 0; k < width; ++k) entry[k] -= earlier[k] * by;
                    earlier += shape_.D - i - 1;  // from (i, r) to (i + 1, r)
                }
                for (std::size_t k = 0; k < width; ++k) own[k] = entry[k];
            }
        };
        tiles(std::integral_constant<std::size_t, 8>{});
        tiles(std::integral_constant<std::size_t, 4>{});
        tiles(std::integral_constant<std::size_t, 2>{});
        tiles(std::integral_constant<std::size_t, 1>{});
    }

    // A slope that is found is taken from all that wait for it.
    void substitute() {
        const std::size_t D = shape_.D, targets = shape_.targets;
        for (std::size_t i = 1; i < D; ++i)
            for (std::size_t t = 0; t < targets; ++t) {
                slope(i, t) *= gram(i, i);
                for (std::size_t j = i + 1; j < D; ++j) slope(j, t) -= gram(i, j) * slope(i, t);
            }
        for (std::size_t i = D - 1; i > 0; --i)
            for (std::size_t t = 0; t < targets; ++t) {
                slope(i, t) *= gram(i, i);
                for (std::size_t j = 1; j < i; ++j) slope(j, t) -= gram(j, i) * slope(i, t);
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
    Scratch<std::uint32_t> places_;
    Scratch<Reals> sums_, gram_, mean_, coefficients_, residual_;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
