// For each plane (a set of rows) and each subset: rows of the plane where the subset's bits have odd parity.
#include <cstddef>
#include <cstdint>

#include "family.hpp"
#include "isa.hpp"

namespace sparsact {

struct PackedColumns {
    const std::uint64_t* data;  // (n, words)
    std::size_t n, words;
};

SPARSACT_DECLARE(
    // planes (n_planes, columns.words); counts (n_planes, family.size); n_threads <= 0: as many as
    // OpenMP would take.
    void parity_counts(PackedColumns columns, const std::uint64_t* planes, std::size_t n_planes,
                       Family family, std::int64_t* counts, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <atomic>

#include "popcount.hpp"
#include "prefix_walk.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t BLOCK = 512;       // words of a column at a time: the levels of a walk stay in L1
constexpr std::size_t MAX_CHUNK = 4096;  // masks that a thread takes at a time

// One thread's memory. Since plane & (a ^ b) = (plane & a) ^ (plane & b), the plane is laid over the columns
// once.
class Worker {
  public:
    Worker(PackedColumns columns, Family family)
        : columns_(columns),
          walk_(family.masks, family.words),
          masked_(columns.n * BLOCK),
          stored_((columns.n + 1) * BLOCK),
          levels_(columns.n + 1) {
        std::fill_n(stored_.data(), BLOCK, 0);
        levels_[0] = stored_.data();
    }

    PrefixWalk& walk() { return walk_; }

    // counts[k] += what plane's words from `first` on hold for mask k of the planned walk.
    void count(const std::uint64_t* plane, std::size_t first, std::int64_t* counts) {
        mask_columns(plane + first, first, std::min(BLOCK, columns_.words - first));
        for (const Step* step = walk_.begin(); step != walk_.end();) step = advance(step, counts);
    }

  private:
    void mask_columns(const std::uint64_t* plane, std::size_t first, std::size_t words) {
        padded_ = (words + GROUP - 1) / GROUP * GROUP;
        for (std::size_t i = 0; i < columns_.n; ++i) {
            const std::uint64_t* column = columns_.data + i * columns_.words + first;
            std::uint64_t* masked = masked_.data() + i * BLOCK;
            for (std::size_t w = 0; w < words; ++w) masked[w] = column[w] & plane[w];
            std::fill(masked + words, masked + padded_, 0);
        }
    }

    const Step* advance(const Step* step, std::int64_t* counts) {
        if (step->run) return count_leaves(step, counts);
        if (step->coordinate != Step::NO_COORDINATE) build(*step);
        if (step->mask != Step::NO_MASK) {
            std::int64_t* count = counts + step->mask;
            const std::uint64_t* zeros = levels_[0];
            add_ones<1>(levels_[step->depth], &zeros, padded_, &count);
        }
        return step + 1;
    }

    void build(const Step& step) {
        const std::uint64_t* column = masked_.data() + step.coordinate * BLOCK;
        if (step.depth == 1) {
            levels_[1] = column;
            return;
        }
        const std::uint64_t* __restrict parent = levels_[step.depth - 1];
        std::uint64_t* __restrict level = stored_.data() + step.depth * BLOCK;
        for (std::size_t w = 0; w < padded_; ++w) level[w] = parent[w] ^ column[w];
        levels_[step.depth] = level;
    }

    const Step* count_leaves(const Step* step, std::int64_t* counts) {
        const int together = std::min<int>(step->run, LEAVES);
        const std::uint64_t* columns[LEAVES];
        std::int64_t* at[LEAVES];
        for (int k = 0; k < together; ++k) {
            columns[k] = masked_.data() + step[k].coordinate * BLOCK;
            at[k] = counts + step[k].mask;
        }
        const std::uint64_t* parent = levels_[step->depth - 1];
        if (together == LEAVES)
            add_ones<LEAVES>(parent, columns, padded_, at);
        else
            for (int k = 0; k < together; ++k) add_ones<1>(parent, columns + k, padded_, at + k);
        return step + together;
    }

    PackedColumns columns_;
    PrefixWalk walk_;
    Scratch<std::uint64_t> masked_, stored_;
    Scratch<const std::uint64_t*> levels_;
    std::size_t padded_ = 0;
};

}  // namespace

void parity_counts(PackedColumns columns, const std::uint64_t* planes, std::size_t n_planes, Family family,
                   std::int64_t* counts, int n_threads) {
    std::fill_n(counts, n_planes * family.size, 0);
    if (family.size == 0) return;
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t chunk = std::min(MAX_CHUNK, family.size / (2 * threads) + 1);
    [[maybe_unused]] const auto useful =
        static_cast<int>(std::min(threads, (family.size + chunk - 1) / chunk));
    std::atomic<std::size_t> next{0};
    // Counts are exact integers, and each belongs to one chunk: nothing depends on which thread takes it.
#ifdef _OPENMP
#pragma omp parallel num_threads(useful)
#endif
    {
        Worker worker(columns, family);
        for (std::size_t start; (start = next.fetch_add(chunk)) < family.size;) {
            const std::size_t end = std::min(family.size, start + chunk);
            const Order order = worker.walk().better_order(start, end);
            for (std::size_t first = start, last; first < end; first = last) {
                last = worker.walk().plan(first, end, order);
                for (std::size_t p = 0; p < n_planes; ++p)
                    for (std::size_t word = 0; word < columns.words; word += BLOCK)
                        worker.count(planes + p * columns.words, word, counts + p * family.size + first);
            }
        }
    }
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Words = Array<const std::uint64_t, 2>;
    using Counts = Array<std::int64_t, 2>;
    module.def(
        "parity_counts",
        [](Words columns, Words planes, Words masks, Counts counts, int n_threads) {
            const PackedColumns table{columns.data(), columns.shape(0), columns.shape(1)};
            const Family family{masks.data(), masks.shape(0), masks.shape(1)};
            const std::uint64_t* sets = planes.data();
            const std::size_t n_planes = planes.shape(0);
            std::int64_t* out = counts.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(parity_counts, table, sets, n_planes, family, out, n_threads);
        },
        nb::arg("columns").noconvert(), nb::arg("planes").noconvert(), nb::arg("masks").noconvert(),
        nb::arg("counts").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
