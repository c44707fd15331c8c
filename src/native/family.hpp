// A family of subsets, as masks of whole words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsact {

struct Family {
    const std::uint64_t* masks;  // (size, words)
    std::size_t size, words;
};

}  // namespace sparsact
