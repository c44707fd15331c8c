// Sums of values times the characters of all small subsets, over rows of bits.
//
// Columns are taken in blocks. Rows are sorted into cells by their bits in a block. Then, for a subset P of
// the columns above the block, one pass over the rows sums in each cell the values of the rows at which P is
// odd, and a transform of the cells gives the sum of P with every small subset T of the block. So a pass
// serves many subsets: counting ones for each subset alone takes a pass for each.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct CodedValues {
    const std::uint64_t* codes;  // (rows, words of n)
    const std::int64_t* values;  // (limbs, rows), in [-2^32, 2^32)
    std::size_t rows, n, limbs;
};

// Subsets of at most `size` of n coordinates, in the order of the numbers they spell. The subsets before
// e_0 > e_1 > ... part from it at some e_j, which they lack: the rank is the sum of below(e_j, size - j).
struct SmallSubsets {
    const std::int64_t* counts;  // (n + 1, size + 1): subsets of range(e) with at most r members
    std::size_t n, size;

    std::int64_t below(std::size_t e, std::size_t most) const { return counts[e * (size + 1) + most]; }
    std::size_t count() const { return static_cast<std::size_t>(below(n, size)); }
};

// sums (limbs, subsets.count()); n >= 3. Blocks have at most `width` >= 5 columns.
SPARSACT_DECLARE(void character_sums(CodedValues rows, SmallSubsets subsets, std::size_t width,
                                     std::int64_t* sums, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "builtins.hpp"
#include "popcount.hpp"
#include "scratch.hpp"
#include "threads.hpp"
#include "transpose_bits.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

using Word = std::uint64_t;
constexpr std::size_t WORD = 64;

// Rows by their bits in a block. Where they are sorted, 64 of one cell make a word; eight cells stand side by
// side, all as high as the fullest of them. What is left of a word is no row: its bits are 0.
class Cells {
  public:
    Cells(const CodedValues& rows, std::size_t first, std::size_t width)
        : size_(std::size_t{1} << width), cell_(rows.rows) {
        const std::size_t words = (rows.n + WORD - 1) / WORD, word = first / WORD, shift = first % WORD;
        for (std::size_t i = 0; i < rows.rows; ++i) {
            const Word* code = rows.codes + i * words;
            Word bits = code[word] >> shift;
            if (shift + width > WORD && word + 1 < words) bits |= code[word + 1] << (WORD - shift);
            cell_[i] = static_cast<std::uint32_t>(bits & (size_ - 1));
        }
    }

    void sort() {
        std::vector<std::uint32_t> filled(size_);
        std::vector<std::size_t> starts(size_ / GROUP);
        places_.resize(cell_.size());
        for (std::size_t i = 0; i < cell_.size(); ++i) places_[i] = filled[cell_[i]]++;
        for (std::size_t group = 0; group < starts.size(); ++group) {
            const auto* own = filled.data() + group * GROUP;
            heights_.push_back((*std::max_element(own, own + GROUP) + WORD - 1) / WORD);
            starts[group] = words_;
            words_ += heights_[group] * GROUP;
        }
        for (std::size_t i = 0; i < cell_.size(); ++i) {
            const std::size_t group = cell_[i] / GROUP, slot = places_[i];
            places_[i] = WORD * (starts[group] + slot / WORD * GROUP + cell_[i] % GROUP) + slot % WORD;
        }
    }

    std::size_t size() const { return size_; }
    std::size_t words() const { return words_; }

    // Sums of the values of the rows of each cell.
    void add_up(const std::int64_t* values, std::int64_t* sums) const {
        std::fill_n(sums, size_, 0);
        for (std::size_t i = 0; i < cell_.size(); ++i) sums[cell_[i]] += values[i];
    }

    // Words of each row (rows, width), the lowest n bits of them as columns (n, words()).
    void fill(const Word* of_rows, std::size_t width, std::size_t n, Word* columns) {
        if (sorted_.size() != words_ * WORD * width) sorted_.assign(words_ * WORD * width, 0);
        for (std::size_t i = 0; i < places_.size(); ++i)
            for (std::size_t w = 0; w < width; ++w) sorted_[places_[i] * width + w] = of_rows[i * width + w];
        transpose_bits(sorted_.data(), words_ * WORD, n, columns);
    }

    // The sum of each cell becomes twice what it was, 0 at first, plus or minus the number of its rows in
    // `plane` at which a ^ b is odd.
    void double_and_add(const Word* a, const Word* b, const Word* plane, bool first, bool negative,
                        std::int64_t* sums) const {
        for (const std::size_t height : heights_) {
            const std::size_t words = height * GROUP;
            double_and_add_ones(a, b, plane, words, first, negative, sums);
            a += words, b += words, plane += words, sums += GROUP;
        }
    }

  private:
    std::size_t size_, words_ = 0;
    std::vector<std::uint32_t> cell_;
    std::vector<std::size_t> heights_, places_;
    std::vector<Word> sorted_;  // what is between rows is 0
};

// Sums of (-1)^|T and c| cells[c] for all subsets T of the coordinates with at most `most` members, in
// numeric order; returns their end. `room` has space for as many cells.
std::int64_t* small_sums(const std::int64_t* cells, std::size_t size, std::size_t most, std::int64_t* room,
                         std::int64_t* sums) {
    if (most == 0 || size == 1) {
        *sums = std::accumulate(cells, cells + size, std::int64_t{0});
        return sums + 1;
    }
    const std::size_t half = size / 2;
    const std::int64_t *low = cells, *high = cells + half;
    std::int64_t* __restrict part = room;
    std::int64_t difference = 0;
    for (std::size_t c = 0; c < half; ++c) {
        part[c] = low[c] + high[c];
        difference += low[c] - high[c];
    }
    sums = small_sums(part, half, most, room + half, sums);
    if (most == 1) {  // the subset of this coordinate alone
        *sums = difference;
        return sums + 1;
    }
    for (std::size_t c = 0; c < half; ++c) part[c] = low[c] - high[c];
    return small_sums(part, half, most - 1, room + half, sums);
}

// One thread's memory.
struct Room {
    Room(std::size_t words, std::size_t cells, std::size_t size, std::size_t subsets)
        : levels(words * size), cells(2 * cells), sums(subsets) {}

    Scratch<Word> levels;
    Scratch<std::int64_t> cells;
    std::vector<std::int64_t> sums;
};

class Block {
  public:
    Block(const CodedValues& rows, const SmallSubsets& subsets, std::size_t first, std::size_t width)
        : cells_(rows, first, width),
          rows_(rows),
          subsets_(subsets),
          first_(first),
          above_(first + width),
          lowest_(rows.limbs),
          beyond_(rows.limbs),
          places_(subsets.size + 1) {
        for (std::size_t most = 0; most <= subsets.size; ++most)
            for (Word T = 0; T < cells_.size(); ++T)
                if (static_cast<std::size_t>(popcount(T)) <= most) places_[most].push_back(rank(T, most));
    }

    void fill(std::int64_t* sums, int n_threads) {
        const std::size_t size = subsets_.size, n = subsets_.n;
        add_up_all_rows();
        for (std::size_t limb = 0; limb < rows_.limbs; ++limb)
            for (std::size_t k = 0; k < places_[size].size(); ++k)
                sums[limb * subsets_.count() + static_cast<std::size_t>(places_[size][k])] =
                    whole_[size * rows_.limbs + limb][k];
        if (size < 2 || above_ >= n) return;
        sort();
        const auto threads = std::min(n - above_, static_cast<std::size_t>(available_threads(n_threads)));
        // Each subset belongs to one P, and P to the thread of its highest column.
        in_parallel(static_cast<int>(threads), threads, [&](std::size_t thread) {
            Room room(cells_.words(), cells_.size(), size, places_[size].size());
            Word* none = room.levels.data();
            std::fill_n(none, cells_.words(), 0);
            for (std::size_t column = above_ + thread; column < n; column += threads)
                with(column, none, size, 0, room, sums);
        });
    }

  private:
    static constexpr std::size_t PLANES = 33;  // of a limb: 32 bits and the sign

    void add_up_all_rows() {
        std::vector<std::int64_t> sums(cells_.size()), room(cells_.size());
        whole_.resize(places_.size() * rows_.limbs);
        for (std::size_t limb = 0; limb < rows_.limbs; ++limb) {
            cells_.add_up(rows_.values + limb * rows_.rows, sums.data());
            for (std::size_t most = 0; most < places_.size(); ++most) {
                auto& whole = whole_[most * rows_.limbs + limb];
                whole.resize(places_[most].size());
                small_sums(sums.data(), sums.size(), most, room.data(), whole.data());
            }
        }
    }

    // The columns, and the bits of the values, with the rows in the order of cells.
    void sort() {
        cells_.sort();
        columns_ = std::make_unique<Scratch<Word>>(rows_.n * cells_.words());
        planes_ = std::make_unique<Scratch<Word>>(rows_.limbs * PLANES * cells_.words());
        cells_.fill(rows_.codes, (rows_.n + WORD - 1) / WORD, rows_.n, columns_->data());
        for (std::size_t limb = 0; limb < rows_.limbs; ++limb) {
            const auto* values = reinterpret_cast<const Word*>(rows_.values) + limb * rows_.rows;
            Word used = 0;
            for (std::size_t i = 0; i < rows_.rows; ++i) used |= values[i];
            used &= (Word{1} << PLANES) - 1;
            if (used == 0) used = 1;
            lowest_[limb] = static_cast<std::size_t>(trailing_zeros(used));
            beyond_[limb] = WORD - static_cast<std::size_t>(leading_zeros(used));
            cells_.fill(values, 1, beyond_[limb], planes_->data() + limb * PLANES * cells_.words());
        }
    }

    // Of a subset T of the block below higher members, when most of all members are still to come.
    std::int64_t rank(Word T, std::size_t most) const {
        std::int64_t rank = 0;
        for (; T; --most) {
            const int bit = 63 - leading_zeros(T);
            T ^= Word{1} << bit;
            rank += subsets_.below(first_ + static_cast<std::size_t>(bit), most);
        }
        return rank;
    }

    // Fills the sums of P with `column` and every T, and of what lies below. `parent` is the parity of P;
    // `left` members may join P.
    void with(std::size_t column, const Word* parent, std::size_t left, std::int64_t rank, Room& room,
              std::int64_t* sums) const {
        const std::size_t words = cells_.words(), most = left - 1;
        const Word* own = columns_->data() + column * words;
        rank += subsets_.below(column, left);
        for (std::size_t limb = 0; limb < rows_.limbs; ++limb) {
            std::int64_t *in_cells = room.cells.data(), *odd = room.sums.data();
            for (std::size_t bit = beyond_[limb]; bit-- > lowest_[limb];)
                cells_.double_and_add(parent, own, planes_->data() + (limb * PLANES + bit) * words,
                                      bit + 1 == beyond_[limb], bit == PLANES - 1, in_cells);
            small_sums(in_cells, cells_.size(), most, in_cells + cells_.size(), odd);
            std::int64_t* to = sums + limb * subsets_.count() + rank;
            const std::int64_t unit = std::int64_t{2} << lowest_[limb];
            const std::int64_t* whole = whole_[most * rows_.limbs + limb].data();
            for (std::size_t k = 0; k < places_[most].size(); ++k)
                to[places_[most][k]] = whole[k] - odd[k] * unit;
        }
        if (most < 2) return;
        Word* __restrict parity = room.levels.data() + most * words;
        for (std::size_t w = 0; w < words; ++w) parity[w] = parent[w] ^ own[w];
        for (std::size_t next = above_; next < column; ++next) with(next, parity, most, rank, room, sums);
    }

    Cells cells_;
    CodedValues rows_;
    SmallSubsets subsets_;
    std::size_t first_, above_;
    std::unique_ptr<Scratch<Word>> columns_, planes_;
    std::vector<std::size_t> lowest_, beyond_;       // bits that values of a limb have
    std::vector<std::vector<std::int64_t>> places_;  // [most]: of T with at most `most` members, after P
    std::vector<std::vector<std::int64_t>> whole_;   // sums at all rows, for each of these and each limb
};

}  // namespace

void character_sums(CodedValues rows, SmallSubsets subsets, std::size_t width, std::int64_t* sums,
                    int n_threads) {
    const std::size_t n = subsets.n, blocks = (n + width - 1) / width;
    // A block fills the sums of its columns with columns above. The first also fills the sums of fewer than
    // `size` columns above alone; so do others, with the same numbers.
    for (std::size_t k = 0; k < blocks; ++k) {
        const std::size_t first = k * n / blocks, end = (k + 1) * n / blocks;
        Block(rows, subsets, first, end - first).fill(sums, n_threads);
    }
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Codes = Array<const std::uint64_t, 2>;
    using Values = Array<const std::int64_t, 2>;
    using Sums = Array<std::int64_t, 2>;
    module.def(
        "character_sums",
        [](Codes codes, Values values, Values counts, std::size_t width, Sums sums, int n_threads) {
            const std::size_t n = counts.shape(0) - 1;
            const CodedValues rows{codes.data(), values.data(), codes.shape(0), n, values.shape(0)};
            const SmallSubsets subsets{counts.data(), n, counts.shape(1) - 1};
            std::int64_t* out = sums.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(character_sums, rows, subsets, width, out, n_threads);
        },
        nb::arg("codes").noconvert(), nb::arg("values").noconvert(), nb::arg("counts").noconvert(),
        nb::arg("width"), nb::arg("sums").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
