// The walk through a list of masks that reuses what neighbours share.
//
// A mask is read as the sequence of its coordinates, from the highest down (or the lowest up). Level d holds
// the xor (or product) of the first d of them; a mask starts from the longest prefix it shares with the mask
// before. Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "builtins.hpp"
#include "scratch.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

enum class Order { descending, ascending };

struct Step {
    std::uint32_t
        coordinate;  // level[depth] = level[depth - 1] with this coordinate; NO_COORDINATE: as it stands
    std::uint32_t depth;
    std::int32_t mask;  // which mask is now complete, counted from the first of the walk; NO_MASK: none
    std::uint16_t run;  // leaves from here on that share one parent
    bool keep;          // the next mask builds on this level

    static constexpr std::uint32_t NO_COORDINATE = ~std::uint32_t{0};
    static constexpr std::int32_t NO_MASK = -1;

    bool leaf() const { return mask != NO_MASK && coordinate != NO_COORDINATE && !keep; }
};

class PrefixWalk {
  public:
    PrefixWalk(const std::uint64_t* masks, std::size_t words)
        : masks_(masks), words_(words), capacity_(std::max(MIN_CAPACITY, 64 * words)), steps_(capacity_) {}

    // Plans the walk through masks first, first + 1, ... before `last`, as far as there is room; returns its
    // end.
    std::size_t plan(std::size_t first, std::size_t last, Order order) {
        size_ = 0;
        const std::uint64_t* before = nullptr;
        std::size_t k = first;
        for (; k < last; ++k) {
            const std::uint64_t* mask = masks_ + k * words_;
            const Difference difference = compare(mask, before, order);
            if (size_ + std::max<std::size_t>(difference.fresh, 1) > capacity_) break;
            append(mask, difference, static_cast<std::int32_t>(k - first), order);
            before = mask;
        }
        count_runs();
        return k;
    }

    // The order in which masks first, ..., last - 1 share more, judged by the first of them.
    Order better_order(std::size_t first, std::size_t last) const {
        std::size_t descending = 0, ascending = 0;
        for (std::size_t k = first + 1; k < std::min(last, first + SAMPLE); ++k) {
            const std::uint64_t* mask = masks_ + k * words_;
            descending += compare(mask, mask - words_, Order::descending).fresh;
            ascending += compare(mask, mask - words_, Order::ascending).fresh;
        }
        return ascending < descending ? Order::ascending : Order::descending;
    }

    const Step* begin() const { return steps_.data(); }
    const Step* end() const { return steps_.data() + size_; }

  private:
    static constexpr std::size_t MIN_CAPACITY = 8192, SAMPLE = 1024;

    struct Difference {
        std::size_t shared, fresh;  // coordinates of the common prefix, and coordinates after it
        std::size_t word;           // where the first fresh coordinate is looked for
        std::uint64_t bits;         // of that word, without coordinates of the prefix
    };

    Difference compare(const std::uint64_t* mask, const std::uint64_t* before, Order order) const {
        Difference d{0, 0, 0, 0};
        bool differs = false;
        for (std::size_t i = 0; i < words_; ++i) {
            const std::size_t w = order == Order::descending ? words_ - 1 - i : i;
            if (differs) {
                d.fresh += popcount(mask[w]);
                continue;
            }
            const std::uint64_t difference = before ? mask[w] ^ before[w] : ~std::uint64_t{0};
            differs = difference != 0;
            const std::uint64_t fresh = differs ? reached_from(difference, order) : 0;
            d.word = w;
            d.bits = mask[w] & fresh;
            d.fresh += popcount(d.bits);
            d.shared += popcount(mask[w] & ~fresh);
        }
        return d;
    }

    // All bits from the first set bit on, in the given order.
    static std::uint64_t reached_from(std::uint64_t bits, Order order) {
        return order == Order::descending ? ~std::uint64_t{0} >> leading_zeros(bits) : bits | -bits;
    }

    void append(const std::uint64_t* mask, const Difference& difference, std::int32_t index, Order order) {
        auto depth = static_cast<std::uint32_t>(difference.shared);
        const auto last = static_cast<std::uint32_t>(difference.shared + difference.fresh);
        if (size_ && steps_[size_ - 1].depth == depth) steps_[size_ - 1].keep = true;
        if (depth == last) steps_[size_++] = {Step::NO_COORDINATE, depth, index, 0, true};
        std::size_t word = difference.word;
        std::uint64_t bits = difference.bits;
        while (depth < last) {
            while (!bits) bits = mask[order == Order::descending ? --word : ++word];
            const int bit = order == Order::descending ? 63 - leading_zeros(bits) : trailing_zeros(bits);
            bits ^= std::uint64_t{1} << bit;
            ++depth;
            const auto coordinate = static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(bit);
            steps_[size_++] = {coordinate, depth, depth == last ? index : Step::NO_MASK, 0, depth < last};
        }
    }

    void count_runs() {
        for (std::size_t i = size_; i-- > 0;) {
            if (!steps_[i].leaf()) continue;
            const bool same = i + 1 < size_ && steps_[i + 1].run && steps_[i + 1].depth == steps_[i].depth;
            steps_[i].run = static_cast<std::uint16_t>(same ? std::min(steps_[i + 1].run + 1, 0xFFFF) : 1);
        }
    }

    const std::uint64_t* masks_;
    std::size_t words_, capacity_, size_ = 0;
    Scratch<Step> steps_;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
