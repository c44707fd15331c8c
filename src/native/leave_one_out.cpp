// What the tables would say of each row had they never seen it. The same bits on every instruction set and
// number of threads: tables come in order.
#include "bucket_statistics.hpp"

namespace sparsact {

struct HeldSums {
    const std::int64_t* counts;  // (n,)
    const double* sums;          // (n, n_sums)
    std::size_t n;
};

SPARSACT_DECLARE(
    // values (m, targets) and total (m,), the weight behind each. Buckets left with fewer than `least` rows
    // are empty. n_threads <= 0: as many as OpenMP would take.
    void leave_one_out(const BucketRows& rows, double alpha, std::int64_t least, HeldSums buckets,
                       double* values, double* total, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>

#include "bucket_solver.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t GROUPS = 16;  // vectors of rows that a task takes

// As many rows as a vector has lanes; past the last row, the last again.
class Group {
  public:
    Group(const BucketRows& rows, double alpha, std::int64_t least, HeldSums buckets)
        : rows_(rows),
          shape_(rows.p, rows.degree, rows.targets),
          products_(rows.p, 2 * rows.degree),
          least_(least),
          buckets_(buckets),
          solver_(shape_, rows.degree, alpha),
          own_(shape_.values()),
          phi_(shape_.D),
          values_(shape_.targets),
          nothing_(shape_.sums()) {
        std::fill_n(nothing_.data(), shape_.sums(), 0.0);
    }

    void fill(std::size_t first, double* values, double* total) {
        const std::size_t here = std::min(LANES, rows_.m - first), targets = shape_.targets;
        for (std::size_t l = 0; l < LANES; ++l) row_[l] = first + std::min(l, here - 1);
        std::fill_n(values_.data(), targets, Reals{});
        total_ = Reals{};
        for (std::size_t t = 0; t < rows_.tables; ++t) {
            if (t + 1 < rows_.tables) prefetch_sums(t + 1);
            take_away(t);
            add();
        }
        double lane[LANES];
        const Reals one = Reals{} + 1.0, whole = total_ > 0.0 ? total_ : one;
        for (std::size_t k = 0; k < targets; ++k) {
            store(lane, values_[k] / whole);
            for (std::size_t l = 0; l < here; ++l) values[(first + l) * targets + k] = lane[l];
        }
        store(lane, total_);
        std::copy_n(lane, here, total + first);
    }

  private:
    std::size_t bucket(std::size_t l, std::size_t t) const {
        return static_cast<std::size_t>(rows_.ids[row_[l] * rows_.tables + t]);  // negative: larger than any
    }

    void prefetch_sums(std::size_t t) const {
        const std::size_t n = shape_.sums();
        for (std::size_t l = 0; l < LANES; ++l)
            for (std::size_t k = 0; k < std::min<std::size_t>(n, 64); k += 8)
                prefetch(buckets_.sums, bucket(l, t) * n + k);
    }

    // The sums of each row's bucket in table t without the row, and its weight: 0 for a bucket that is empty.
    void take_away(std::size_t t) {
        const double* own[LANES];
        double counted[LANES];
        for (std::size_t l = 0; l < LANES; ++l) {
            const std::size_t at = bucket(l, t);
            const bool known = at < buckets_.n;
            own[l] = known ? buckets_.sums + at * shape_.sums() : nothing_.data();
            counted[l] = known && buckets_.counts[at] > least_ ? 1.0 : 0.0;
        }
        solver_.read(own);
        const auto coordinate = [&](std::size_t j) {
            return lanes_of([&](std::size_t l) { return rows_.V[rows_.features(row_[l], t) + j]; });
        };
        for_each_monomial<Reals>(shape_.p, rows_.degree, coordinate,
                                 [&](std::size_t a, Reals monomial) { phi_[a] = monomial; });
        contributions(
            shape_, products_, lanes_of([&](std::size_t l) { return rows_.weights[row_[l]]; }),
            [](std::size_t) { return Reals{}; }, coordinate, [&](std::size_t k) { return y(k); },
            own_.data());
        for (std::size_t k = shape_.p; k < shape_.values(); ++k) solver_.sum(k) -= own_[k];
        weight_ = load<Reals>(counted) > 0.0 ? solver_.sum(shape_.monomial(0)) : Reals{};
    }

    Reals y(std::size_t k) const {
        return lanes_of([&](std::size_t l) { return rows_.Y[row_[l] * shape_.targets + k]; });
    }

    void add() {
        solver_.solve();
        for (std::size_t k = 0; k < shape_.targets; ++k) {
            Reals value{};
            for (std::size_t a = 0; a < shape_.D; ++a) value += phi_[a] * solver_.coefficient(a, k);
            values_[k] += weight_ > 0.0 ? weight_ * value : Reals{};
        }
        total_ += weight_ < 0.0 ? Reals{} : weight_;
    }

    const BucketRows& rows_;
    const Shape shape_;
    const Products products_;
    const std::int64_t least_;
    const HeldSums buckets_;
    BucketSolver solver_;
    Scratch<Reals> own_, phi_, values_;
    Scratch<double> nothing_;
    Reals weight_{}, total_{};
    std::size_t row_[LANES];
};

}  // namespace

void leave_one_out(const BucketRows& rows, double alpha, std::int64_t least, HeldSums buckets, double* values,
                   double* total, int n_threads) {
    const std::size_t groups = (rows.m + LANES - 1) / LANES;
    in_parallel(available_threads(n_threads), (groups + GROUPS - 1) / GROUPS, [&](std::size_t task) {
        Group group(rows, alpha, least, buckets);
        for (std::size_t g = task * GROUPS; g < std::min(groups, (task + 1) * GROUPS); ++g)
            group.fill(g * LANES, values, total);
    });
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    module.def(
        "leave_one_out",
        [](Ids ids, Matrix Z, Cube V, Matrix Y, Numbers weights, int degree, double alpha, std::int64_t least,
           Array<const std::int64_t, 1> counts, Matrix sums, Array<double, 2> values, Array<double, 1> total,
           int n_threads) {
            const BucketRows rows = rows_of(ids, Z, V, Y, weights, degree);
            const HeldSums buckets{counts.data(), sums.data(), sums.shape(0)};
            double *out = values.data(), *behind = total.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(leave_one_out, rows, alpha, least, buckets, out, behind, n_threads);
        },
        nb::arg("ids"), nb::arg("Z"), nb::arg("V"), nb::arg("Y"), nb::arg("weights"), nb::arg("degree"),
        nb::arg("alpha"), nb::arg("least"), nb::arg("counts"), nb::arg("sums"), nb::arg("values").noconvert(),
        nb::arg("total").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
