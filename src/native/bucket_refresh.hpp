// Solves buckets that rows meet and that have changed since they were solved. Internal linkage: each
// instruction set keeps its own copy.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "bucket_solver.hpp"
#include "bucket_values.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

class Refresher {
  public:
    static constexpr std::size_t MOST = 256;        // numbers of buckets that a call takes
    static constexpr std::size_t MOST_AHEAD = 256;  // sums asked for ahead; longer runs the processor sees
    static constexpr std::chrono::milliseconds PATIENCE{100};  // far more than a call solves buckets for

    explicit Refresher(const BucketPolynomials& buckets, std::size_t p)
        : buckets_(buckets), shape_(p, buckets.degree, buckets.targets) {}

    // Buckets among these numbers are solved then; no number of a bucket is passed over.
    void refresh(const std::uint64_t* numbers, std::size_t count) {
        if (!buckets_.unsolved.stale) return;
        std::size_t taken = 0, waiting = 0;
        std::uint64_t mine[MOST], others[MOST];
        for (std::size_t i = 0; i < count; ++i) {
            if (numbers[i] >= buckets_.n || state(numbers[i]).load(std::memory_order_acquire) == SOLVED)
                continue;
            if (!solver_)
                solver_ = std::make_unique<BucketSolver>(shape_, buckets_.degree, buckets_.unsolved.alpha);
            std::uint8_t before = STALE;
            if (state(numbers[i]).compare_exchange_strong(before, TAKEN, std::memory_order_acquire)) {
                mine[taken++] = numbers[i];
                prefetch_sums(numbers[i]);
            } else {
                others[waiting++] = numbers[i];
            }
        }
        if (taken) solve_all(mine, taken);
        if (!waiting) return;
        // Only now: whoever took them may wait for mine. A thread that a fork left behind never ends: what is
        // not solved in time is solved here, to the same bits.
        std::size_t late = 0;
        const auto end = std::chrono::steady_clock::now() + PATIENCE;
        for (std::size_t i = 0; i < waiting; ++i)
            if (!solved_by(end, others[i])) others[late++] = others[i];
        solve_all(others, late);
    }

  private:
    // A flag of an array of NumPy, as one that threads may share.
    std::atomic<std::uint8_t>& state(std::uint64_t number) {
        static_assert(sizeof(std::atomic<std::uint8_t>) == 1 &&
                      std::atomic<std::uint8_t>::is_always_lock_free);
        return *reinterpret_cast<std::atomic<std::uint8_t>*>(buckets_.unsolved.stale + number);
    }

    bool solved_by(std::chrono::steady_clock::time_point end, std::uint64_t number) {
        while (state(number).load(std::memory_order_acquire) != SOLVED) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::yield();
        }
        return true;
    }

    void solve_all(const std::uint64_t* numbers, std::size_t count) {
        for (std::size_t first = 0; first < count; first += LANES)
            solve(numbers + first, std::min(LANES, count - first));
    }

    void prefetch_sums(std::uint64_t number) const {
        const Unsolved& given = buckets_.unsolved;
        const std::size_t n_sums = shape_.sums();
        for (std::size_t k = 0; k < std::min(n_sums, MOST_AHEAD); k += 8)
            prefetch(given.sums + number * n_sums, k);
        prefetch(given.sums + number * n_sums, n_sums - 1);
        prefetch(given.counts, number);
    }

    void solve(const std::uint64_t* numbers, std::size_t count) {
        const Unsolved& given = buckets_.unsolved;
        const std::size_t size = buckets_.size(), targets = buckets_.targets;
        const double* from[LANES];
        for (std::size_t l = 0; l < LANES; ++l)
            from[l] = given.sums + numbers[std::min(l, count - 1)] * shape_.sums();
        solver_->read(from);
        solver_->solve();
        double lane[LANES];
        for (std::size_t k = 0; k < size; ++k) {
            store(lane, solver_->coefficient(k / targets, k % targets));
            for (std::size_t l = 0; l < count; ++l) record(numbers[l])[k] = lane[l] * given.unit[k % targets];
        }
        for (std::size_t l = 0; l < count; ++l) {
            const std::uint64_t number = numbers[l];
            const double weight = given.sums[number * shape_.sums() + shape_.monomial(0)];
            record(number)[size] = given.counts[number] >= given.least ? weight : 0.0;
            state(number).store(SOLVED, std::memory_order_release);
        }
    }

    double* record(std::uint64_t number) { return buckets_.records + number * buckets_.stride(); }

    const BucketPolynomials& buckets_;
    const Shape shape_;
    std::unique_ptr<BucketSolver> solver_;  // made before the first bucket is taken: it may lack memory
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
