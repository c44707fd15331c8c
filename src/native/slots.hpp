// Open addressing, read only: (n, 2) words, key and number of a bucket; n a power of two. Any content is
// safe: no slot is read that is not there, and no search runs for ever.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"
#include "vector.hpp"

namespace sparsact {

struct Slots {
    const std::uint64_t* words;
    std::size_t n;
};

constexpr std::uint64_t NOWHERE = ~std::uint64_t{0};

namespace SPARSACT_ISA {

class Search {
  public:
    explicit Search(Slots slots) : slots_(slots) {
        while (slots.n >> (bits_ + 1)) ++bits_;
    }

    // The first slot to look at: the high bits of the key.
    SPARSACT_INLINE std::size_t home(std::uint64_t key) const {
        return static_cast<std::size_t>(key >> 1 >> (63 - bits_));
    }
    SPARSACT_INLINE std::size_t after(std::size_t at) const { return at + 1 == slots_.n ? 0 : at + 1; }

    SPARSACT_INLINE void prefetch_home(std::uint64_t key) const { prefetch(slots_.words, 2 * home(key)); }

    // Number of a key's bucket, or NOWHERE.
    SPARSACT_INLINE std::uint64_t number(std::uint64_t key) const {
        std::size_t at = home(key);
        for (std::size_t step = 0; step < slots_.n; ++step, at = after(at)) {
            const std::uint64_t found = slots_.words[2 * at + 1];
            if (found == NOWHERE || slots_.words[2 * at] == key) return found;
        }
        return NOWHERE;
    }

  private:
    Slots slots_;
    int bits_ = 0;
};

}  // namespace SPARSACT_ISA
}  // namespace sparsact
