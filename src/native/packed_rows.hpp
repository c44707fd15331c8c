// Products of many inputs with a quantised matrix, packed part by part into the order in which the kernels
// read it.
#pragma once

#include "int8_linear.hpp"
#include "row_streams.hpp"
#include "scratch.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t PACKED = 128,
                      BLOCKS =
                          4;  // codes of an input, and blocks of INT8_BLOCK outputs, that are packed at once

// put(j, sums) for outputs j, ..., j + INT8_BLOCK - 1 of m inputs, whose codes stand `width` apart:
// pack(j, blocks, first, groups, packed) packs the weights of `together` * groups codes from `first` on for
// `blocks` blocks, and add[inputs - 1] adds their products with that number of inputs.
template <std::size_t together, class Weight, class Code, class Add, class Pack, class Put>
void multiply_packed(std::size_t outputs, const Code* x, std::size_t m, std::size_t width, int n_threads,
                     const Add* add, Pack pack, Put put) {
    in_shares(n_threads, (outputs + INT8_BLOCK - 1) / INT8_BLOCK, [&](std::size_t block, std::size_t end) {
        const std::size_t most = std::min(BLOCKS, end - block);
        Scratch<Weight> packed(most * PACKED * INT8_BLOCK);
        Scratch<std::int32_t> sums(most * m * INT8_BLOCK);
        for (; block < end; block += most) {
            const std::size_t blocks = std::min(most, end - block);
            std::fill_n(sums.data(), blocks * m * INT8_BLOCK, 0);
            for (std::size_t first = 0; first < width; first += PACKED) {
                const std::size_t groups = std::min(PACKED, width - first) / together;
                pack(block * INT8_BLOCK, blocks, first, groups, packed.data());
                for (std::size_t b = 0; b < blocks; ++b)
                    for (std::size_t i = 0; i < m; i += INPUTS_AT_ONCE)
                        add[std::min(INPUTS_AT_ONCE, m - i) - 1](
                            x + i * width + first, width, packed.data() + b * together * groups * INT8_BLOCK,
                            groups, sums.data() + (b * m + i) * INT8_BLOCK);
            }
            for (std::size_t b = 0; b < blocks; ++b)
                put((block + b) * INT8_BLOCK, sums.data() + b * m * INT8_BLOCK);
        }
    });
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
