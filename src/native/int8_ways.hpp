// The kernels of int8 products, in the way of multiplying that this processor has.
#pragma once

#include <cstring>

#include "int8_linear.hpp"
#include "row_streams.hpp"
#include "tiles.hpp"
#include "vector.hpp"

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr int ADDED = 8;  // rows that are added up at once

#ifdef SPARSACT_VECTORS
// Adds numbers that are `half` apart within each vector; sums of the two vectors alternate in the result.
template <int half>
SPARSACT_INLINE Vector<std::int32_t> exchanged_sum(Vector<std::int32_t> one, Vector<std::int32_t> other) {
    exchange<half, std::int32_t>(one, other, std::make_integer_sequence<int, lanes<std::int32_t>>{});
    return one + other;
}
#endif

struct Int8Products {
    void (*of_rows)(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                    std::int32_t* sums);
    void (*add_rows)(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                     std::int32_t* sums, const std::int8_t* const* next);
    void (*in_order)(std::int32_t* sums, std::size_t width);
    void (*pack_columns)(const std::int8_t* const* rows, std::size_t groups, std::size_t column,
                         std::size_t blocks, std::int8_t* packed);
    void (*add_packed[MAX_INPUTS])(const std::uint8_t* x, std::size_t apart, const std::int8_t* packed,
                                   std::size_t groups, std::int32_t* sums);
    using OfTiles = void (*)(const std::uint8_t* x, std::size_t width, const std::int8_t* const* tiles,
                             std::int32_t* sums);
    OfTiles of_one_input, of_inputs[TOGETHER];
    std::uint32_t (*int4_offset)(const std::int8_t* codes);
    using OfInt4Tiles = void (*)(const std::int8_t* x, const std::uint32_t* offsets, std::size_t groups,
                                 const std::uint8_t* const* tiles, const std::int8_t* const* multipliers,
                                 std::int32_t* sums);
    OfInt4Tiles int4_of_one_input, int4_of_inputs[TOGETHER];
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA

#define INT8_WAY in_16_bits
#define INT8_TARGET
#include "int8_lanes.hpp"
#include "int8_products.hpp"
#undef INT8_WAY
#undef INT8_TARGET

#if defined(SPARSACT_ISA_avx2) || defined(SPARSACT_ISA_avx512)
#define INT8_WAY in_32_bits
#ifdef SPARSACT_ISA_avx512
#define INT8_TARGET __attribute__((target("avx512vnni")))
#else
#define INT8_TARGET __attribute__((target("avxvnni")))
#endif
#define INT8_VNNI
#include "int8_lanes.hpp"
#include "int8_products.hpp"
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

inline const Int8Products& int8_products() {
#ifdef INT8_VNNI
    if (current_vnni()) return in_32_bits::products;
#endif
    return in_16_bits::products;
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
