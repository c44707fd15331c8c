// Correlations of all monomials of low degree with small integers; the largest are kept.
//
// A monomial is a prefix of few coordinates times a column: one coordinate, or the product of two, that come
// after all coordinates of the prefix. Prefixes are numbered in numeric order. A prefix permutes the tables
// of sums by which tiles of columns are summed up.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct MonomialScan {
    const std::uint8_t* tiles;    // (blocks, n_tiles, GROUPS, TILE): bits of four rows of a column
    const std::uint8_t* nibbles;  // (n, blocks * GROUPS): bits of four rows of a coordinate
    const std::int8_t* table;     // (blocks * GROUPS, 16): sum of four integers with these signs
    const std::int64_t* starts;   // (n + 1): the first column of a prefix below coordinate j
    const std::int64_t* counts;   // (n + 1, members + 1): subsets of e coordinates with at most r members
    std::size_t blocks, n_tiles, n_columns, members;  // at most `members` coordinates in a prefix
};

struct ScannedMonomial {
    std::int64_t number;  // of its prefix, times n_columns, plus its column
    std::int32_t score;

    bool operator<(const ScannedMonomial& other) const {
        return score != other.score ? score > other.score : number < other.number;
    }
};

struct ScanRange {
    std::size_t begin, end;  // numbers of prefixes
    std::int32_t least;      // score
};

// `best` holds `found` monomials and has room for `keep`: the best of these and of the range, in no order.
// Returns how many.
SPARSACT_DECLARE(std::size_t scan_monomials(const MonomialScan& scan, ScanRange range, ScannedMonomial* best,
                                            std::size_t found, std::size_t keep, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <atomic>
#include <vector>

#include "builtins.hpp"
#include "monomial_tiles.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t BATCH = 32;  // prefixes whose tables stay in the first cache
constexpr std::size_t MOST_MEMBERS = 8;

// Subsets of at most `members` coordinates in numeric order.
struct ScanPrefix {
    std::size_t size = 0;
    std::uint32_t coordinates[MOST_MEMBERS];  // descending

    ScanPrefix(const MonomialScan& scan, std::size_t number) {
        const std::size_t width = scan.members + 1;
        for (auto left = static_cast<std::int64_t>(number); left > 0;) {
            const std::int64_t* column = scan.counts + (scan.members - size);
            std::uint32_t e = 0;
            while (column[(e + 1) * width] <= left) ++e;
            left -= column[e * width];
            coordinates[size++] = e;
        }
    }

    void advance(std::size_t members) {
        if (members == 0) return;
        std::uint32_t e = size < members ? 0 : coordinates[size - 1];
        for (; size && coordinates[size - 1] == e; ++e) --size;
        coordinates[size++] = e;
    }
};

// The best monomials so far; which they are does not depend on the order in which they come.
class Best {
  public:
    Best(std::size_t keep, std::int32_t least) : keep_(keep), least_(least) {}

    std::int32_t least() const { return least_; }
    std::vector<ScannedMonomial>& all() { return all_; }

    void add(ScannedMonomial one) {
        if (full_ && !(one < worst_)) return;
        all_.push_back(one);
        if (all_.size() >= 2 * keep_) shrink();
    }

    void shrink() {
        if (all_.size() <= keep_) return;
        const auto last = all_.begin() + static_cast<std::ptrdiff_t>(keep_) - 1;
        std::nth_element(all_.begin(), last, all_.end());
        worst_ = *last;
        full_ = true;
        least_ = std::max(least_, worst_.score);
        all_.resize(keep_);
    }

  private:
    std::vector<ScannedMonomial> all_;
    ScannedMonomial worst_{};
    std::size_t keep_;
    std::int32_t least_;
    bool full_ = false;
};

class ScanWorker {
  public:
    explicit ScanWorker(const MonomialScan& scan)
        : scan_(scan),
          stride_(scan.n_tiles * TILE),
          tables_(BATCH * GROUPS * ENTRIES),
          sums_(BATCH * stride_) {}

    // Prefixes number first, ..., first + count - 1, at most BATCH.
    void scan(ScanPrefix& prefix, std::size_t first, std::size_t count, Best& best) {
        std::size_t begin = scan_.n_columns;
        std::vector<ScanPrefix> batch;
        for (std::size_t p = 0; p < count; ++p, prefix.advance(scan_.members)) {
            batch.push_back(prefix);
            begin = std::min(begin, start_of(prefix));
        }
        if (begin == scan_.n_columns) return;
        const std::size_t padded = (count + TOGETHER - 1) / TOGETHER * TOGETHER, tile = begin / TILE;
        for (std::size_t p = 0; p < padded; ++p)
            std::fill(sums_.data() + p * stride_ + tile * TILE, sums_.data() + (p + 1) * stride_,
                      std::int16_t{0});
        for (std::size_t block = 0; block < scan_.blocks; ++block) {
            for (std::size_t p = 0; p < padded; ++p) make_tables(batch[std::min(p, count - 1)], p, block);
            const std::uint8_t* tiles = scan_.tiles + block * scan_.n_tiles * GROUPS * TILE;
            add_from<SIDE_BY_SIDE>(tiles, tile, padded);
        }
        for (std::size_t p = 0; p < count; ++p) collect(p, start_of(batch[p]), first + p, best);
    }

  private:
    std::size_t start_of(const ScanPrefix& prefix) const {
        return static_cast<std::size_t>(scan_.starts[prefix.size ? prefix.coordinates[0] + 1 : 0]);
    }

    void make_tables(const ScanPrefix& prefix, std::size_t p, std::size_t block) {
        std::uint8_t bits[GROUPS] = {};
        for (std::size_t i = 0; i < prefix.size; ++i) {
            const std::uint8_t* its = scan_.nibbles + (prefix.coordinates[i] * scan_.blocks + block) * GROUPS;
            prefetch(its, 8 * GROUPS);
            for (std::size_t g = 0; g < GROUPS; ++g) bits[g] ^= its[g];
        }
        permute(scan_.table + block * GROUPS * ENTRIES, bits, tables_.data() + p * GROUPS * ENTRIES);
    }

    // Tiles from t on of a block, N at a time: they stay in the first cache while all prefixes pass.
    template <std::size_t N>
    void add_from(const std::uint8_t* tiles, std::size_t t, std::size_t prefixes) {
        for (; t + N <= scan_.n_tiles; t += N)
            for (std::size_t p = 0; p < prefixes; p += TOGETHER)
                add_tiles<N>(tables_.data() + p * GROUPS * ENTRIES, tiles + t * GROUPS * TILE,
                             sums_.data() + p * stride_ + t * TILE, stride_);
        if constexpr (N > 1) add_from<N - 1>(tiles, t, prefixes);
    }

    void collect(std::size_t p, std::size_t begin, std::size_t number, Best& best) {
        const std::int16_t* sums = sums_.data() + p * stride_;
        for (std::size_t first = begin / 16 * 16; first < scan_.n_columns; first += 16)
            for (std::uint32_t found = large(sums + first, best.least()); found; found &= found - 1) {
                const std::size_t column = first + static_cast<std::size_t>(trailing_zeros(found));
                if (column < begin || column >= scan_.n_columns) continue;
                best.add({static_cast<std::int64_t>(number * scan_.n_columns + column),
                          std::min(std::abs(std::int32_t{sums[column]}), LARGEST)});
            }
    }

    const MonomialScan& scan_;
    std::size_t stride_;
    Scratch<std::int8_t> tables_;
    Scratch<std::int16_t> sums_;
};

}  // namespace

std::size_t scan_monomials(const MonomialScan& scan, ScanRange range, ScannedMonomial* best,
                           std::size_t found, std::size_t keep, int n_threads) {
    if (scan.n_columns == 0 || range.begin == range.end || keep == 0) return found;
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t length = range.end - range.begin, share = (length / (8 * threads) / BATCH + 1) * BATCH;
    std::vector<Best> bests(std::min(threads, (length + share - 1) / share), Best(keep, range.least));
    for (std::size_t i = 0; i < found; ++i) bests[0].add(best[i]);
    std::atomic<std::size_t> next{range.begin};
    in_parallel(static_cast<int>(bests.size()), bests.size(), [&](std::size_t thread) {
        ScanWorker worker(scan);
        for (std::size_t first; (first = next.fetch_add(share)) < range.end;) {
            ScanPrefix prefix(scan, first);
            const std::size_t end = std::min(first + share, range.end);
            for (std::size_t p = first; p < end; p += BATCH)
                worker.scan(prefix, p, std::min(BATCH, end - p), bests[thread]);
        }
    });
    for (std::size_t thread = 1; thread < bests.size(); ++thread)
        for (const ScannedMonomial& one : bests[thread].all()) bests[0].add(one);
    bests[0].shrink();
    std::copy(bests[0].all().begin(), bests[0].all().end(), best);
    return bests[0].all().size();
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include <vector>

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Bytes = Array<const std::uint8_t, 2>;
    using Integers = Array<const std::int64_t, 2>;
    module.def(
        "scan_monomials",
        [](Array<const std::uint8_t, 4> tiles, Bytes nibbles, Array<const std::int8_t, 2> table,
           Array<const std::int64_t, 1> starts, Integers counts, std::size_t n_columns, std::size_t begin,
           std::size_t end, std::int32_t least, Array<std::int64_t, 2> best, std::size_t found,
           int n_threads) {
            const MonomialScan scan{tiles.data(),   nibbles.data(), table.data(),
                                    starts.data(),  counts.data(),  tiles.shape(0),
                                    tiles.shape(1), n_columns,      counts.shape(1) - 1};
            std::int64_t* rows = best.data();
            const std::size_t keep = best.shape(0);
            nb::gil_scoped_release unlocked;
            std::vector<ScannedMonomial> some(keep);
            for (std::size_t i = 0; i < found; ++i)
                some[i] = {rows[2 * i], static_cast<std::int32_t>(rows[2 * i + 1])};
            found = SPARSACT_DISPATCH(scan_monomials, scan, ScanRange{begin, end, least}, some.data(), found,
                                      keep, n_threads);
            for (std::size_t i = 0; i < found; ++i)
                rows[2 * i] = some[i].number, rows[2 * i + 1] = some[i].score;
            return found;
        },
        nb::arg("tiles").noconvert(), nb::arg("nibbles").noconvert(), nb::arg("table").noconvert(),
        nb::arg("starts").noconvert(), nb::arg("counts").noconvert(), nb::arg("n_columns"), nb::arg("begin"),
        nb::arg("end"), nb::arg("least"), nb::arg("best").noconvert(), nb::arg("found"),
        nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
