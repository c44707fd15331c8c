// All subsets of at most `size` of n coordinates in numeric order, and the rank of each among them.
#include <cstddef>
#include <cstdint>

#include "family.hpp"
#include "isa.hpp"

namespace sparsact {

// masks (subsets, words), in the order of the numbers they spell; the last word is the most significant.
void subsets_in_order(std::size_t n, std::size_t size, std::size_t words, std::uint64_t* masks);

constexpr std::size_t WORD = 64;

SPARSACT_DECLARE(
    // gram (family.size, family.size): gram[a, b] = moments[rank of masks[a] ^ masks[b]], which has at most
    // `size` members. n_threads <= 0: as many as OpenMP would take.
    void ranked_gram(Family family, const double* moments, std::size_t n, std::size_t size, double* gram,
                     int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <array>
#include <vector>

#include "builtins.hpp"
#include "threads.hpp"

#ifdef SPARSACT_ISA_portable

namespace sparsact {

namespace {

// Writes a prefix alone, then, by their highest member, all ways to add at most `size` of the coordinates
// below `end`.
class Writer {
  public:
    Writer(std::size_t words, std::uint64_t* masks) : prefix_(words), next_(masks) {}

    void write(std::size_t end, std::size_t size) {
        next_ = std::copy(prefix_.begin(), prefix_.end(), next_);
        if (size == 0) return;
        for (std::size_t i = 0; i < end; ++i) {
            const std::uint64_t bit = std::uint64_t{1} << i % WORD;
            prefix_[i / WORD] ^= bit;
            write(i, size - 1);
            prefix_[i / WORD] ^= bit;
        }
    }

  private:
    std::vector<std::uint64_t> prefix_;
    std::uint64_t* next_;
};

}  // namespace

void subsets_in_order(std::size_t n, std::size_t size, std::size_t words, std::uint64_t* masks) {
    Writer(words, masks).write(n, size);
}

}  // namespace sparsact

#endif

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t TILE = 64;  // of the Gram matrix: it and its mirror image stay in cache

// The subsets before e_0 > e_1 > ... part from it at some e_j, which they lack: they hold at most size - j of
// the coordinates below it. So the rank is the sum over j of the number of those.
template <std::size_t WORDS>
class Ranks {
  public:
    Ranks(std::size_t n, std::size_t size, std::size_t words)
        : words_(WORDS ? WORDS : words),
          size_(size),
          width_(WORD * words_ + 1),
          counts_((2 * size + 1) * width_) {
        for (std::size_t below = 0; below <= size; ++below) {  // of members that may stand below one
            std::uint64_t* count = counts_.data() + (2 * size - below) * width_;
            count[0] = 1;  // Pascal's rule: without e or with it
            for (std::size_t e = 0; e + 1 < n; ++e) count[e + 1] = count[e] + (below ? count[width_ + e] : 0);
        }
    }

    std::uint64_t of_difference(const std::uint64_t* a, const std::uint64_t* b) const {
        if constexpr (WORDS == 1) {
            // Always `size` steps, from the lowest member up, and no branch to guess: beyond the highest
            // member stands the column of zeros.
            std::uint64_t bits = a[0] ^ b[0], rank = 0;
            const std::uint64_t* count =
                counts_.data() + (size_ + static_cast<std::size_t>(popcount(bits))) * width_;
            for (std::size_t step = 0; step < size_; ++step, bits &= bits - 1) {
                count -= width_;
                rank += count[bits ? trailing_zeros(bits) : 64];
            }
            return rank;
        }
        const std::uint64_t* count = counts_.data() + size_ * width_;
        std::uint64_t rank = 0;
        for (std::size_t w = words_; w-- > 0;)
            for (std::uint64_t bits = a[w] ^ b[w]; bits; count += width_) {
                const int bit = 63 - leading_zeros(bits);
                bits ^= std::uint64_t{1} << bit;
                rank += count[WORD * w + static_cast<std::size_t>(bit)];
            }
        return rank;
    }

  private:
    std::size_t words_, size_, width_;
    std::vector<std::uint64_t> counts_;  // (2 size + 1, width): below `size` of zeros, then by members above
};

template <std::size_t WORDS>
void fill_gram(Family family, const double* moments, std::size_t n, std::size_t size, double* gram,
               int n_threads) {
    const Ranks<WORDS> ranks(n, size, family.words);
    const std::size_t words = WORDS ? WORDS : family.words, D = family.size;
    const auto fill_tile = [&](std::size_t top, std::size_t left) {
        const std::size_t bottom = std::min(D, top + TILE), right = std::min(D, left + TILE);
        std::array<std::uint64_t, TILE * TILE>
            places;  // found first: many loads are then under way at a time
        std::uint64_t* place = places.data();
        for (std::size_t a = top; a < bottom; ++a)
            for (std::size_t b = left; b < right; ++b)
                *place++ = ranks.of_difference(family.masks + a * words, family.masks + b * words);
        place = places.data();
        for (std::size_t a = top; a < bottom; ++a)
            for (std::size_t b = left; b < right; ++b) gram[a * D + b] = moments[*place++];
        for (std::size_t b = left; b < right; ++b)
            for (std::size_t a = top; a < bottom; ++a) gram[b * D + a] = gram[a * D + b];
    };
    const auto fill_band = [&](std::size_t band) {  // on and below the diagonal, and their mirror image
        for (std::size_t left = 0; left <= band; ++left) fill_tile(band * TILE, left * TILE);
    };
    const std::size_t tiles = (D + TILE - 1) / TILE;
    // A long band of tiles goes with a short one, so that all threads have as much to do.
    in_parallel(available_threads(n_threads), (tiles + 1) / 2, [&](std::size_t band) {
        fill_band(band);
        if (tiles - 1 - band != band) fill_band(tiles - 1 - band);
    });
}

}  // namespace

void ranked_gram(Family family, const double* moments, std::size_t n, std::size_t size, double* gram,
                 int n_threads) {
    const auto fill = family.words == 1 ? fill_gram<1> : family.words == 2 ? fill_gram<2> : fill_gram<0>;
    fill(family, moments, n, size, gram, n_threads);
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Words = Array<const std::uint64_t, 2>;
    using Masks = Array<std::uint64_t, 2>;
    using Moments = Array<const double, 1>;
    using Gram = Array<double, 2>;
    module.def(
        "subsets_in_order",
        [](std::size_t n, std::size_t size, Masks masks) {
            std::uint64_t* out = masks.data();
            const std::size_t words = masks.shape(1);
            nb::gil_scoped_release unlocked;
            subsets_in_order(n, size, words, out);
        },
        nb::arg("n"), nb::arg("size"), nb::arg("masks").noconvert());
    module.def(
        "ranked_gram",
        [](Words masks, Moments moments, std::size_t n, std::size_t size, Gram gram, int n_threads) {
            const Family family{masks.data(), masks.shape(0), masks.shape(1)};
            const double* values = moments.data();
            double* out = gram.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(ranked_gram, family, values, n, size, out, n_threads);
        },
        nb::arg("masks").noconvert(), nb::arg("moments").noconvert(), nb::arg("n"), nb::arg("size"),
        nb::arg("gram").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
