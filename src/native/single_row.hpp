// Where a single row falls, in all tables at once: a vector holds several codes of the row, in place of one
// code of several rows. Results equal hashed_rows.hpp bit for bit. Internal linkage: each instruction set
// keeps its own copy.
#pragma once

#include <new>

#include "combine.hpp"
#include "hashed_rows.hpp"
#include "polynomials.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

// out (width,): n numbers times (n, width) directions, summed in order from 0, with offsets (null: none)
// last.
inline void row_times(const double* x, std::size_t n, const double* directions, const double* offsets,
                      std::size_t width, double* out) {
    constexpr std::size_t VECTORS = 4, TILE = VECTORS * LANES;
    std::size_t first = 0;
    for (; first + TILE <= width; first += TILE) {
        Reals sums[VECTORS] = {};
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t v = 0; v < VECTORS; ++v)
                sums[v] += x[i] * load<Reals>(directions + i * width + first + v * LANES);
        for (std::size_t v = 0; v < VECTORS; ++v) {
            const std::size_t at = first + v * LANES;
            store(out + at, offsets ? sums[v] + load<Reals>(offsets + at) : sums[v]);
        }
    }
    for (; first < width; ++first) {
        double sum = 0.0;
        for (std::size_t i = 0; i < n; ++i) sum += x[i] * directions[i * width + first];
        out[first] = offsets ? sum + offsets[first] : sum;
    }
}

class SingleRow {
  public:
    SingleRow(const Hashes& hashes, const double* x)
        : hashes_(hashes),
          codes_(hashes.q * hashes.tables),
          padded_((codes_ + LANES - 1) / LANES * LANES),
          far_(memory() > NEAR ? memory() : 0),
          numbers_(memory() > NEAR ? far_.data() : near_),
          keys_(reinterpret_cast<std::uint64_t*>(numbers_ + hashes.d + hashes.p + 2 * padded_)) {
        for (std::size_t i = 0; i < hashes.d; ++i) numbers_[i] = x[i] - hashes.centre[i];
        row_times(X(), hashes.d, hashes.local, nullptr, hashes.p, Z());
        const bool grid = hashes.grid;
        row_times(grid ? Z() : X(), grid ? hashes.p : hashes.d, hashes.directions, hashes.offsets, codes_,
                  U());
        std::fill_n(U() + codes_, padded_ - codes_, 0.0);
        if (!near_codes()) any_codes();
        mix();
    }
    SingleRow(const SingleRow&) = delete;

    // A row of its own in some space, the slots of its keys on their way; whoever is done with it destroys
    // it.
    template <class Search>
    static void put(RowSpace& space, const Hashes& hashes, const double* x, const Search& search) {
        static_assert(sizeof(SingleRow) <= sizeof(RowSpace) && alignof(SingleRow) <= alignof(RowSpace));
        const auto* row = new (space.bytes) SingleRow(hashes, x);
        for (std::size_t t = 0; t < hashes.tables; ++t) search.prefetch_home(row->keys_[t]);
    }
    static SingleRow& in(RowSpace& space) { return *std::launder(reinterpret_cast<SingleRow*>(space.bytes)); }

    // Numbers of buckets take the place of keys; meet(number) is called with each.
    template <class Search, class Meet>
    void look_up(const Search& search, Meet meet) {
        for (std::size_t t = 0; t < hashes_.tables; ++t) {
            keys_[t] = search.number(keys_[t]);
            meet(keys_[t]);
        }
    }
    const std::uint64_t* numbers() const { return keys_; }

    // Local coordinates (p,), and features (p,) of a table.
    const double* local() const { return numbers_ + hashes_.d; }
    const double* features(std::size_t table) const {
        return hashes_.grid ? numbers_ + hashes_.d + hashes_.p + padded_ + table * hashes_.q : local();
    }

    // What the tables say together, and the weight behind it.
    template <class Buckets>
    double value(const Buckets& buckets, Combine combine, double& total) const {
        double value = 0.0;
        total = 0.0;
        for (std::size_t t = 0; t < hashes_.tables; t += LANES)
            add(buckets, combine, t, std::min(LANES, hashes_.tables - t), value, total);
        if (combine == Combine::average) value /= total > 0.0 ? total : 1.0;
        return value;
    }

    // The centred row times slopes (d,).
    double times(const double* slopes) const {
        double total = 0.0;
        for (std::size_t i = 0; i < hashes_.d; ++i) total += numbers_[i] * slopes[i];
        return total;
    }

  private:
    // The polynomials of some tables, one a lane.
    template <class Buckets>
    void add(const Buckets& buckets, Combine combine, std::size_t first, std::size_t tables, double& value,
             double& total) const {
        const std::uint64_t* numbers = keys_ + first;
        using Own = decltype(buckets.polynomial(0));
        Own own[LANES], known = nullptr;
        double weight[LANES], values[LANES];
        const double* v[LANES];
        for (std::size_t l = 0; l < LANES; ++l) {
            const bool there = l < tables && numbers[l] < buckets.n;
            own[l] = there ? buckets.polynomial(numbers[l]) : nullptr;
            weight[l] = there ? share(combine, buckets.weight(numbers[l]), total) : 0.0;
            v[l] = features(first + std::min(l, tables - 1));
            if (there) known = own[l];
        }
        if (!known) return;
        for (std::size_t l = 0; l < LANES; ++l) own[l] = own[l] ? own[l] : known;
        with_dimension(buckets.degree ? hashes_.p : 0, [&](auto constant) {
            constexpr std::size_t P = decltype(constant)::value;
            const std::size_t p = buckets.degree ? hashes_.p : 0;
            Reals near[P ? P : 1];
            Scratch<Reals> far(P ? 0 : p);
            Reals* local = P ? near : far.data();
            for (std::size_t j = 0; j < p; ++j) local[j] = lanes_of([&](std::size_t l) { return v[l][j]; });
            store(values, polynomials<P>(p, buckets.degree, own, local));
        });
        for (std::size_t l = 0; l < tables; ++l)
            if (weight[l] > 0.0) value += weight[l] * values[l];
    }

    double* X() { return numbers_; }
    double* Z() { return X() + hashes_.d; }
    double* U() { return Z() + hashes_.p; }
    double* V() { return U() + padded_; }

    // Codes take the place of keys; false if a projection is so far off that they are wrong.
    bool near_codes() {
        Words far{}, none{};
        for (std::size_t k = 0; k < padded_; k += LANES) {
            const Reals u = load<Reals>(U() + k);
            if (hashes_.signs) {
                store(keys_ + k, u > 0.0 ? none + 1 : none);
                store(V() + k, u > 0.0 ? (u - 1.0) - 0.5 : u - 0.5);
            } else {
                const Reals cells = near_cells(u, far);
                store(keys_ + k, code_of(cells));
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
        const std::size_t q = hashes_.q;
        std::size_t t = 0;
        for (; t + LANES <= hashes_.tables; t += LANES) {
            Words keys = load<Words>(hashes_.seeds + t);
            for (std::size_t j = 0; j < q; ++j) {
                std::uint64_t code[LANES];
                for (std::size_t l = 0; l < LANES; ++l) code[l] = keys_[(t + l) * q + j];
                keys = mixed<Words>(keys, load<Words>(code));
            }
            store(keys_ + t, finished<Words>(keys));
        }
        for (; t < hashes_.tables; ++t) {
            std::uint64_t key = hashes_.seeds[t];
            for (std::size_t j = 0; j < q; ++j) key = mixed<std::uint64_t>(key, keys_[t * q + j]);
            keys_[t] = finished<std::uint64_t>(key);
        }
    }

    const Hashes& hashes_;
    std::size_t codes_, padded_;
    static constexpr std::size_t NEAR = 1024;  // numbers that need no memory of their own
    std::size_t memory() const {
        return hashes_.d + hashes_.p + 2 * padded_ + std::max(padded_, hashes_.tables);
    }

    Scratch<double> far_;
    alignas(64) double near_[NEAR];
    double* numbers_;
    std::uint64_t* keys_;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
