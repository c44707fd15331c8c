// All distinct symmetric differences of two subsets of a family. No vectors in it: compiled once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "family.hpp"

namespace sparsact {

struct MaskArray {
    std::unique_ptr<std::uint64_t[]> data;  // (size, words)
    std::size_t size;
};

// Distinct masks in numeric order, the last word the most significant; position (size, size) holds their
// places.
MaskArray symmetric_differences(Family family, std::int32_t* position);

}  // namespace sparsact
