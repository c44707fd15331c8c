// Where a single row falls, in all tables at once: a vector holds several codes of the row, in place of one
// code of several rows. The bits are those of hashed_rows.hpp. Internal linkage: each instruction set keeps
// its own copy.
#pragma once

#include "hashed_rows.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

// out (width,): n numbers times (n, width) directions, summed in order from 0, with offsets (null: none)
// last.
inline void row_times(const double* x, std::size_t n, const double* directions, const double* offsets,
                      std::size_t width, double* out) {
    std::fill_n(out, width, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < width; ++j) out[j] += x[i] * directions[i * width + j];
    if (offsets)
        for (std::size_t j = 0; j < width; ++j) out[j] += offsets[j];
}

class SingleRow {
  public:
    SingleRow(const Hashes& hashes, const double* x)
        : hashes_(hashes),
          codes_(hashes.q * hashes.tables),
          padded_((codes_ + LANES - 1) / LANES * LANES),
          keys_(std::max(padded_, hashes.tables)),
          numbers_(hashes.d + hashes.p + 2 * padded_) {
        for (std::size_t i = 0; i < hashes.d; ++i) numbers_[i] = x[i] - hashes.centre[i];
        row_times(X(), hashes.d, hashes.local, nullptr, hashes.p, Z());
        const bool grid = hashes.grid;
        row_times(grid ? Z() : X(), grid ? hashes.p : hashes.d, hashes.directions, hashes.offsets, codes_,
                  U());
        std::fill_n(U() + codes_, padded_ - codes_, 0.0);
        if (!near_codes()) any_codes();
        mix();
    }

    const std::uint64_t* keys() const { return keys_.data(); }  // (tables,)
    // Features (p,) of a table.
    const double* features(std::size_t table) const {
        return hashes_.grid ? numbers_.data() + hashes_.d + hashes_.p + padded_ + table * hashes_.q
                            : numbers_.data() + hashes_.d;
    }
    void times(const double* slopes, std::size_t width, double* out) const {
        row_times(numbers_.data(), hashes_.d, slopes, nullptr, width, out);
    }

  private:
    double* X() { return numbers_.data(); }
    double* Z() { return X() + hashes_.d; }
    double* U() { return Z() + hashes_.p; }
    double* V() { return U() + padded_; }

    // Codes take the place of keys; false if a projection is so far off that they are wrong.
    bool near_codes() {
        Words far{}, none{};
        for (std::size_t k = 0; k < padded_; k += LANES) {
            const Reals u = load<Reals>(U() + k);
            if (hashes_.signs) {
                store(keys_.data() + k, u > 0.0 ? none + 1 : none);
                store(V() + k, u > 0.0 ? (u - 1.0) - 0.5 : u - 0.5);
            } else {
                const Reals cells = near_cells(u, far);
                store(keys_.data() + k, code_of(cells));
                store(V() + k, (u - cells) - 0.5);
            }
        }
        std::uint64_t lane[LANES];
        store(lane, far);
        return std::none_of(lane, lane + LANES, [](std::uint64_t bits) { return bits != 0; });
    }

    void any_codes() {
        for (std::size_t k = 0; k < codes_; ++k) {
            const double u = U()[k], cell = any_cell(u);
            keys_[k] = static_cast<std::uint64_t>(static_cast<std::int64_t>(cell));
            V()[k] = (u - cell) - 0.5;
        }
    }

    // Keys take the place of the codes that they are mixed of: a table's key stands before its codes.
    void mix() {
        for (std::size_t t = 0; t < hashes_.tables; ++t) {
            std::uint64_t key = hashes_.seeds[t];
            for (std::size_t j = 0; j < hashes_.q; ++j)
                key = mixed<std::uint64_t>(key, keys_[t * hashes_.q + j]);
            keys_[t] = finished<std::uint64_t>(key);
        }
    }

    const Hashes& hashes_;
    std::size_t codes_, padded_;
    Scratch<std::uint64_t> keys_;
    Scratch<double> numbers_;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
