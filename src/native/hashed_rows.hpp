// Some rows at a time, a column beside each other, so that a vector holds one number of several rows.
// Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <cmath>

#include "column_sums.hpp"
#include "hashing.hpp"
#include "mixing.hpp"
#include "scratch.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

using Words = Vector<std::uint64_t>;

template <class To, class From>
SPARSACT_INLINE To bits_of(From from) {
    static_assert(sizeof(To) == sizeof(From), "as wide");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// Cells of projections; where |U| >= LARGEST or U is NaN, `far` is set and the cell is wrong.
constexpr double LARGEST = 2251799813685248.0;     // 2**51
constexpr double TO_INTEGER = 6755399441055744.0;  // 1.5 * 2**52: a sum with it is rounded to an integer

SPARSACT_INLINE Reals near_cells(Reals U, Words& far) {
    const Words none{}, all = ~none;
    far |= U < LARGEST ? none : all;
    far |= U > -LARGEST ? none : all;
    const Reals nearest = (U + TO_INTEGER) - TO_INTEGER;
    return nearest > U ? nearest - 1.0 : nearest;
}

SPARSACT_INLINE Words code_of(Reals cells) {
    const Reals zero = Reals{} + TO_INTEGER;
    return bits_of<Words>(cells + TO_INTEGER) - bits_of<Words>(zero);
}

// The cell of any projection: far ones are all alike, and NaN counts as 0.
inline double any_cell(double u) {
    constexpr double FARTHEST = 4611686018427387904.0;  // 2**62
    return u != u ? 0.0 : std::floor(std::min(std::max(u, -FARTHEST), FARTHEST));
}

class HashedRows {
  public:
    explicit HashedRows(const Hashes& hashes)
        : hashes_(hashes), X_(hashes.d * BLOCK), Z_(hashes.p * BLOCK), U_(hashes.q * BLOCK) {}

    // The rows to speak of, at most BLOCK of them; vectors are filled up with rows of zeros.
    void read(const double* X, std::size_t rows) {
        n_ = rows;
        constexpr std::size_t GROUP = 8;
        const std::size_t d = hashes_.d;
        std::size_t row = 0;
        for (; row + GROUP <= rows; row += GROUP)
            for (std::size_t i = 0; i < d; ++i)
                for (std::size_t r = 0; r < GROUP; ++r)
                    X_[i * BLOCK + row + r] = X[(row + r) * d + i] - hashes_.centre[i];
        for (; row < rows; ++row)
            for (std::size_t i = 0; i < d; ++i) X_[i * BLOCK + row] = X[row * d + i] - hashes_.centre[i];
        for (; row % LANES != 0; ++row)
            for (std::size_t i = 0; i < d; ++i) X_[i * BLOCK + row] = 0.0;
        project(X_.data(), d, hashes_.local, hashes_.p, nullptr, hashes_.p, n_, Z_.data());
    }

    // Columns (p, BLOCK) of local coordinates, and (width, BLOCK) of the centred rows times (d, width)
    // slopes.
    const double* Z() const { return Z_.data(); }
    void times(const double* slopes, std::size_t width, double* out) const {
        project(X_.data(), hashes_.d, slopes, width, nullptr, width, n_, out);
    }

    // Keys (BLOCK,) of one table and, with a grid, features (p, BLOCK); else features are Z.
    void hash(std::size_t table, std::uint64_t* keys, double* features) {
        const std::size_t q = hashes_.q, stride = q * hashes_.tables;
        project(hashes_.grid ? Z_.data() : X_.data(), hashes_.grid ? hashes_.p : hashes_.d,
                hashes_.directions + table * q, stride, hashes_.offsets + table * q, q, n_, U_.data());
        for (std::size_t row = 0; row < n_; row += LANES) {
            Words far{};
            const Words found = near_keys(hashes_.seeds[table], row, far, features);
            store(keys + row, found);
            std::uint64_t lane[LANES];
            store(lane, far);
            if (std::any_of(lane, lane + LANES, [](std::uint64_t bits) { return bits != 0; }))
                for (std::size_t r = row; r < row + LANES; ++r)
                    keys[r] = any_key(hashes_.seeds[table], r, features);
        }
    }

  private:
    SPARSACT_INLINE Words near_keys(std::uint64_t seed, std::size_t row, Words& far, double* features) const {
        const Words none{};
        Words keys = none + seed;
        for (std::size_t j = 0; j < hashes_.q; ++j) {
            const Reals U = load<Reals>(U_.data() + j * BLOCK + row);
            if (hashes_.signs) {
                keys = mixed<Words>(keys, U > 0.0 ? none + 1 : none);
                if (hashes_.grid) store(features + j * BLOCK + row, U > 0.0 ? (U - 1.0) - 0.5 : U - 0.5);
            } else {
                const Reals cells = near_cells(U, far);
                keys = mixed<Words>(keys, code_of(cells));
                if (hashes_.grid) store(features + j * BLOCK + row, (U - cells) - 0.5);
            }
        }
        return finished<Words>(keys);
    }

    std::uint64_t any_key(std::uint64_t key, std::size_t row, double* features) const {
        for (std::size_t j = 0; j < hashes_.q; ++j) {
            const double u = U_[j * BLOCK + row], cell = any_cell(u);
            key = mixed<std::uint64_t>(key, static_cast<std::uint64_t>(static_cast<std::int64_t>(cell)));
            if (hashes_.grid) features[j * BLOCK + row] = (u - cell) - 0.5;
        }
        return finished<std::uint64_t>(key);
    }

    const Hashes hashes_;
    Scratch<double> X_, Z_, U_;
    std::size_t n_ = 0;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
