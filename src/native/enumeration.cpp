// Active units at every point of the cube {-1, 1}^n.
//
// Each half of the coordinates has its table of signed sums, so that a pre-activation is the sum of a low and
// a high entry. For a fixed high entry, unit j is on at the last of the sorted low entries: the point's place
// in that order, 16 bits, is compared in place of its sum.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct CubeUnits {
    const double *W, *b, *tolerance;  // (s, n), (s,), (s,)
    std::size_t s, n;                 // s < 2**15, 1 <= n <= 30
};

// The smallest number of a point with the most units on: surely, and possibly.
struct Witnesses {
    std::int64_t lower, upper;
};

SPARSACT_DECLARE(
    // histograms (2, s + 1) are added to; n_threads <= 0: as many as OpenMP would take.
    Witnesses count_active(CubeUnits units, std::int64_t* histograms, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <vector>

#include "scratch.hpp"
#include "threads.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

using Place = std::int16_t;
using Places = Vector<Place>;

constexpr int VECTORS = 8;  // counts of a tile of points: they stay in registers while units pass
constexpr std::size_t TILE = VECTORS * lanes<Place>;

struct SignedSum {
    double sum;
    std::int32_t point;
};

bool operator<(const SignedSum& a, const SignedSum& b) { return a.sum < b.sum; }

// start +- w_0 +- w_1 ..., ascending. Adding a number keeps an order, rounding included: so each weight
// merges two sorted lists.
class SignedSums {
  public:
    explicit SignedSums(std::size_t coordinates) : coordinates_(coordinates) {
        for (auto* list : {&sums_, &plus_, &minus_}) list->reserve(std::size_t{1} << coordinates);
    }

    const std::vector<SignedSum>& sorted(double start, const double* weights) {
        sums_.assign(1, {start, 0});
        for (std::size_t i = 0; i < coordinates_; ++i) {
            plus_.clear();
            minus_.clear();
            for (const auto [sum, point] : sums_) {
                plus_.push_back({sum + weights[i], point});
                minus_.push_back({sum - weights[i], point | 1 << i});
            }
            sums_.resize(2 * plus_.size());
            std::merge(plus_.begin(), plus_.end(), minus_.begin(), minus_.end(), sums_.begin());
        }
        return sums_;
    }

  private:
    std::size_t coordinates_;
    std::vector<SignedSum> sums_, plus_, minus_;
};

// Places of low points in the order of each unit's sums, and of the thresholds of each high point among them:
// unit j is on at (low, high) when place[low] > bound[high].
class Comparisons {
  public:
    Comparisons(const CubeUnits& units, int n_threads)
        : units_(units),
          low_bits(units.n - units.n / 2),
          tiles((low_size() + TILE - 1) / TILE),
          places_(tiles * units.s * TILE),
          bounds_(2 * high_size() * units.s) {
        std::fill_n(places_.data(), tiles * units.s * TILE, Place{-1});  // what fills up a tile is never on
        in_parallel(n_threads, units.s, [this](std::size_t j) { fill(j); });
    }

    std::size_t low_size() const { return std::size_t{1} << low_bits; }
    std::size_t high_size() const { return std::size_t{1} << (units_.n - low_bits); }

    const Place* places(std::size_t tile) const { return places_.data() + tile * units_.s * TILE; }
    const Place* lower(std::size_t high) const { return bounds_.data() + high * units_.s; }
    const Place* upper(std::size_t high) const { return lower(high_size() + high); }

  private:
    void fill(std::size_t j) {
        SignedSums low_half(low_bits), high_half(units_.n - low_bits);
        const double* weights = units_.W + j * units_.n;
        const auto& low = low_half.sorted(0.0, weights);
        const auto& high = high_half.sorted(-units_.b[j], weights + low_bits);
        for (std::size_t place = 0; place < low.size(); ++place) {
            const auto point = static_cast<std::size_t>(low[place].point);
            places_[(point / TILE * units_.s + j) * TILE + point % TILE] = static_cast<Place>(place);
        }
        for (int side = 0; side < 2; ++side) {
            const double margin = side == 0 ? units_.tolerance[j] : -units_.tolerance[j];
            std::size_t off = 0;  // low sums up to the threshold, which rises as the high sum falls
            for (auto sum = high.rbegin(); sum != high.rend(); ++sum) {
                const double threshold = margin - sum->sum;
                while (off < low.size() && low[off].sum <= threshold) ++off;
                const auto point = static_cast<std::size_t>(sum->point);
                bounds_[(side * high_size() + point) * units_.s + j] = static_cast<Place>(off) - 1;
            }
        }
    }

    CubeUnits units_;

  public:
    const std::size_t low_bits, tiles;

  private:
    Scratch<Place> places_, bounds_;
};

// Units on at each point of a tile.
void count(const Place* places, const Place* bounds, std::size_t s, Place* counts) {
    Places totals[VECTORS] = {};
    for (std::size_t j = 0; j < s; ++j, places += TILE)
        for (int v = 0; v < VECTORS; ++v) {
            const Places here = load<Places>(places + v * lanes<Place>);
            totals[v] += here > bounds[j] ? Places{} + 1 : Places{};
        }
    for (int v = 0; v < VECTORS; ++v) store(counts + v * lanes<Place>, totals[v]);
}

// Points by count, and the first with the largest.
class Tally {
  public:
    explicit Tally(std::size_t s) : size_(s + 1), histograms_(TABLES * size_) {}

    void add(const Place* counts, std::size_t length, std::int64_t first) {
        for (std::size_t i = 0; i < length; ++i)
            ++histograms_[i % TABLES * size_ + static_cast<std::size_t>(counts[i])];
        const Place most = *std::max_element(counts, counts + length);
        if (most < most_ || (most == most_ && first > witness_)) return;
        offer(most, first + (std::find(counts, counts + length, most) - counts));
    }

    void add(const Tally& other) {
        for (std::size_t i = 0; i < histograms_.size(); ++i) histograms_[i] += other.histograms_[i];
        offer(other.most_, other.witness_);
    }

    void add_to(std::int64_t* histogram) const {
        for (std::size_t i = 0; i < histograms_.size(); ++i) histogram[i % size_] += histograms_[i];
    }

    std::int64_t witness() const { return witness_; }

  private:
    void offer(Place most, std::int64_t point) {
        if (most > most_ || (most == most_ && point < witness_)) {
            most_ = most;
            witness_ = point;
        }
    }

    static constexpr std::size_t TABLES = 4;  // neighbours that are equal do not wait for each other

    std::size_t size_;
    std::vector<std::int64_t> histograms_;
    Place most_ = -1;
    std::int64_t witness_ = 0;
};

struct Tallies {
    explicit Tallies(std::size_t s) : both(s), lower(s), upper(s) {}

    void add(const Tallies& other) {
        both.add(other.both);
        lower.add(other.lower);
        upper.add(other.upper);
    }

    Tally both, lower, upper;  // of points where no unit is in doubt, and of the others
};

void tally(const Comparisons& comparisons, std::size_t s, std::size_t begin, std::size_t end,
           Tallies& found) {
    alignas(64) Place counts[TILE];
    const std::size_t length = std::min(TILE, comparisons.low_size());
    for (std::size_t tile = 0; tile < comparisons.tiles; ++tile)
        for (std::size_t high = begin; high < end; ++high) {
            const Place *lower = comparisons.lower(high), *upper = comparisons.upper(high);
            const bool sure = std::equal(lower, lower + s, upper);
            const auto first = static_cast<std::int64_t>((high << comparisons.low_bits) + tile * TILE);
            count(comparisons.places(tile), lower, s, counts);
            (sure ? found.both : found.lower).add(counts, length, first);
            if (sure) continue;
            count(comparisons.places(tile), upper, s, counts);
            found.upper.add(counts, length, first);
        }
}

}  // namespace

Witnesses count_active(CubeUnits units, std::int64_t* histograms, int n_threads) {
    n_threads = available_threads(n_threads);
    const Comparisons comparisons(units, n_threads);
    const std::size_t highs = comparisons.high_size(),
                      tasks = std::min(highs, static_cast<std::size_t>(n_threads));
    std::vector<Tallies> found(tasks, Tallies(units.s));
    in_parallel(n_threads, tasks, [&](std::size_t task) {
        tally(comparisons, units.s, task * highs / tasks, (task + 1) * highs / tasks, found[task]);
    });
    for (std::size_t task = 1; task < tasks; ++task) found[0].add(found[task]);
    Tallies& all = found[0];
    all.lower.add(all.both);
    all.upper.add(all.both);
    all.lower.add_to(histograms);
    all.upper.add_to(histograms + units.s + 1);
    return {all.lower.witness(), all.upper.witness()};
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include <nanobind/stl/pair.h>

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Weights = Array<const double, 2>;
    using Numbers = Array<const double, 1>;
    using Histograms = Array<std::int64_t, 2>;
    module.def(
        "count_active",
        [](Weights W, Numbers b, Numbers tolerance, Histograms histograms, int n_threads) {
            const CubeUnits units{W.data(), b.data(), tolerance.data(), W.shape(0), W.shape(1)};
            std::int64_t* counted = histograms.data();
            nb::gil_scoped_release unlocked;
            const Witnesses found = SPARSACT_DISPATCH(count_active, units, counted, n_threads);
            return std::pair(found.lower, found.upper);
        },
        nb::arg("W").noconvert(), nb::arg("b").noconvert(), nb::arg("tolerance").noconvert(),
        nb::arg("histograms").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
