// Correlations of all monomials of low degree with small integers; the largest are kept.
//
// A monomial is a prefix of few coordinates times a column: one coordinate, or the product of two, above all
// those of the prefix. Prefixes are numbered in numeric order. Four rows at a time, the bits of a column are
// the place in a table of 16 sums, which a prefix permutes: one lookup serves four rows of every lane. Sums
// of 128 rows saturate in 8 bits, sums of these in 16: in the same order on every instruction set.
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
#include "scratch.hpp"
#include "threads.hpp"
#include "vector.hpp"

#ifndef SPARSACT_ISA_portable
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t GROUPS = 32, TILE = 64, ENTRIES = 16;  // of a block, of a tile, of a table
constexpr std::size_t TOGETHER = 4;                          // prefixes that share the loads of a tile
constexpr std::size_t BATCH = 32;                            // prefixes whose tables stay in the first cache
constexpr std::size_t MOST_MEMBERS = 8;
constexpr std::int32_t LARGEST = 32767;

#ifdef SPARSACT_ISA_portable

std::int32_t clipped(std::int32_t x, std::int32_t low, std::int32_t high) {
    return std::min(std::max(x, low), high);
}

// A table with the signs of a prefix: entry i is entry i ^ bits.
void permute(const std::int8_t* table, std::uint8_t bits, std::int8_t* out) {
    for (std::size_t i = 0; i < ENTRIES; ++i) out[i] = table[i ^ bits];
}

// sums (TOGETHER, stride) += what the tables (GROUPS, TOGETHER, ENTRIES) say of a tile.
void add_tile(const std::int8_t* tables, const std::uint8_t* tile, std::int16_t* sums, std::size_t stride) {
    for (std::size_t p = 0; p < TOGETHER; ++p)
        for (std::size_t c = 0; c < TILE; ++c) {
            std::int32_t sum = 0;
            for (std::size_t g = 0; g < GROUPS; ++g)
                sum = clipped(sum + tables[(g * TOGETHER + p) * ENTRIES + tile[g * TILE + c]], -128, 127);
            std::int16_t& total = sums[p * stride + c];
            total = static_cast<std::int16_t>(clipped(total + sum, -LARGEST - 1, LARGEST));
        }
}

// Which of the 16 sums are at least so large in magnitude.
std::uint32_t large(const std::int16_t* sums, std::int32_t least) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < 16; ++i) found |= std::uint32_t{std::abs(sums[i]) >= least} << i;
    return found;
}

#else

void permute(const std::int8_t* table, std::uint8_t bits, std::int8_t* out) {
    const __m128i places = _mm_xor_si128(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                         _mm_set1_epi8(static_cast<char>(bits)));
    const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    _mm_store_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(entries, places));
}

std::uint32_t large(const std::int16_t* sums, std::int32_t least) {
    const __m256i lowest = _mm256_set1_epi16(-LARGEST),
                  below = _mm256_set1_epi16(static_cast<short>(least - 1));
    const __m256i found = _mm256_max_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(sums)), lowest);
    const __m256i at_least = _mm256_cmpgt_epi16(_mm256_abs_epi16(found), below);
    return _pext_u32(static_cast<std::uint32_t>(_mm256_movemask_epi8(at_least)), 0x55555555u);
}

#ifdef SPARSACT_ISA_avx512
using Bytes = __m512i;
SPARSACT_INLINE Bytes load_bytes(const std::uint8_t* from) { return _mm512_loadu_si512(from); }
SPARSACT_INLINE Bytes spread(const std::int8_t* table) {
    return _mm512_maskz_broadcast_i32x4(0xFFFF, _mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}
SPARSACT_INLINE Bytes added(Bytes sum, Bytes table, Bytes places) {
    return _mm512_adds_epi8(sum, _mm512_shuffle_epi8(table, places));
}
SPARSACT_INLINE void add_widened(std::int16_t* sums, Bytes bytes) {
    alignas(64) std::int8_t halves[2][32];
    _mm512_store_si512(halves, bytes);
    const __m512i low = _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<__m256i*>(halves[0])));
    const __m512i high = _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<__m256i*>(halves[1])));
    _mm512_store_si512(sums, _mm512_adds_epi16(_mm512_load_si512(sums), low));
    _mm512_store_si512(sums + 32, _mm512_adds_epi16(_mm512_load_si512(sums + 32), high));
}
#else
using Bytes = __m256i;
SPARSACT_INLINE Bytes load_bytes(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SPARSACT_INLINE Bytes spread(const std::int8_t* table) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}
SPARSACT_INLINE Bytes added(Bytes sum, Bytes table, Bytes places) {
    return _mm256_adds_epi8(sum, _mm256_shuffle_epi8(table, places));
}
SPARSACT_INLINE void add_widened(std::int16_t* sums, Bytes bytes) {
    auto* at = reinterpret_cast<__m256i*>(sums);
    const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes));
    const __m256i high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes, 1));
    _mm256_store_si256(at, _mm256_adds_epi16(_mm256_load_si256(at), low));
    _mm256_store_si256(at + 1, _mm256_adds_epi16(_mm256_load_si256(at + 1), high));
}
#endif

SPARSACT_INLINE void add_tile(const std::int8_t* tables, const std::uint8_t* tile, std::int16_t* sums,
                              std::size_t stride) {
    constexpr std::size_t VECTORS = TILE / sizeof(Bytes);
    Bytes sum[TOGETHER][VECTORS] = {};
    for (std::size_t g = 0; g < GROUPS; ++g) {
        Bytes places[VECTORS];
        for (std::size_t v = 0; v < VECTORS; ++v) places[v] = load_bytes(tile + g * TILE + v * sizeof(Bytes));
        for (std::size_t p = 0; p < TOGETHER; ++p) {
            const Bytes table = spread(tables + (g * TOGETHER + p) * ENTRIES);
            for (std::size_t v = 0; v < VECTORS; ++v) sum[p][v] = added(sum[p][v], table, places[v]);
        }
    }
    for (std::size_t p = 0; p < TOGETHER; ++p)
        for (std::size_t v = 0; v < VECTORS; ++v)
            add_widened(sums + p * stride + v * sizeof(Bytes), sum[p][v]);
}

#endif

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
            for (std::size_t p = 0; p < padded; p += TOGETHER)
                for (std::size_t t = tile; t < scan_.n_tiles; ++t)
                    add_tile(tables_.data() + p * GROUPS * ENTRIES, tiles + t * GROUPS * TILE,
                             sums_.data() + p * stride_ + t * TILE, stride_);
        }
        for (std::size_t p = 0; p < count; ++p) collect(p, start_of(batch[p]), first + p, best);
    }

  private:
    std::size_t start_of(const ScanPrefix& prefix) const {
        return static_cast<std::size_t>(scan_.starts[prefix.size ? prefix.coordinates[0] + 1 : 0]);
    }

    void make_tables(const ScanPrefix& prefix, std::size_t p, std::size_t block) {
        alignas(64) std::uint8_t bits[GROUPS] = {};
        for (std::size_t i = 0; i < prefix.size; ++i) {
            const std::uint8_t* its = scan_.nibbles + (prefix.coordinates[i] * scan_.blocks + block) * GROUPS;
            for (std::size_t g = 0; g < GROUPS; ++g) bits[g] ^= its[g];
        }
        const std::int8_t* table = scan_.table + block * GROUPS * ENTRIES;
        std::int8_t* out = tables_.data() + (p / TOGETHER * TOGETHER * GROUPS + p % TOGETHER) * ENTRIES;
        for (std::size_t g = 0; g < GROUPS; ++g)
            permute(table + g * ENTRIES, bits[g], out + g * TOGETHER * ENTRIES);
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
