// Transposing packed bits, for other kernels of the same instruction set; packed_bits.cpp does it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsact::SPARSACT_ISA {

// Columns (n, words of m) to rows (m, words of n).
void transpose_bits(const std::uint64_t* columns, std::size_t n, std::size_t m, std::uint64_t* rows);

}  // namespace sparsact::SPARSACT_ISA
