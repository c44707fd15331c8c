// A set of masks that numbers them as they come: open addressing, whole keys compared, so it is exact.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "builtins.hpp"

namespace sparsact {

// WORDS = 0 stands for a number known only at run time; the common small ones unroll.
template <std::size_t WORDS>
class MaskSet {
  public:
    explicit MaskSet(std::size_t words) : words_(WORDS ? WORDS : words) { rehash(1024); }

    static std::uint64_t hash(const std::uint64_t* mask, std::size_t words) {
        std::uint64_t h = 0;
        for (std::size_t w = 0; w < (WORDS ? WORDS : words); ++w) {
            h = (h ^ mask[w]) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
            h ^= h >> 29;
        }
        return h * 0xD6E8FEB86659FD93u;
    }

    void prefetch(std::uint64_t hash) const { prefetch_read(&slots_[place(hash)]); }

    // The number of a mask; a new one gets the next.
    std::uint32_t number(const std::uint64_t* mask, std::uint64_t hash) {
        const auto tag = static_cast<std::uint32_t>(hash);
        for (std::size_t i = place(hash);; i = (i + 1) & (capacity_ - 1)) {
            Slot& slot = slots_[i];
            if (slot.number == EMPTY) {
                slot = {tag, static_cast<std::uint32_t>(size_)};
                masks_.insert(masks_.end(), mask, mask + words_);
                if (2 * ++size_ > capacity_) rehash(2 * capacity_);
                return static_cast<std::uint32_t>(size_ - 1);
            }
            if (slot.tag == tag && equal(mask, slot.number)) return slot.number;
        }
    }

    // The masks by number, (size, words); the set is spent.
    std::vector<std::uint64_t> release() {
        slots_.reset();
        return std::move(masks_);
    }

  private:
    struct Slot {
        std::uint32_t tag, number;
    };
    static constexpr std::uint32_t EMPTY = ~std::uint32_t{0};

    std::size_t place(std::uint64_t hash) const { return hash >> shift_; }

    bool equal(const std::uint64_t* mask, std::uint32_t number) const {
        return std::equal(mask, mask + words_, masks_.data() + number * words_);
    }

    void rehash(std::size_t capacity) {
        capacity_ = capacity;
        shift_ = 64 - trailing_zeros(capacity);
        slots_.reset();  // before the larger ones: not both at a time
        slots_ = std::make_unique<Slot[]>(capacity);
        std::fill_n(slots_.get(), capacity, Slot{0, EMPTY});
        for (std::size_t k = 0; k < size_; ++k) {
            const std::uint64_t h = hash(masks_.data() + k * words_, words_);
            std::size_t i = place(h);
            while (slots_[i].number != EMPTY) i = (i + 1) & (capacity_ - 1);
            slots_[i] = {static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(k)};
        }
    }

    std::size_t words_, size_ = 0, capacity_ = 0;
    int shift_ = 0;
    std::unique_ptr<Slot[]> slots_;
    std::vector<std::uint64_t> masks_;
};

}  // namespace sparsact
