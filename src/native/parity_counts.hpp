// For each plane (a set of rows) and each subset: rows of the plane where the subset's bits have odd parity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "family.hpp"
#include "isa.hpp"

namespace sparsact {

struct PackedColumns {
    const std::uint64_t* data;  // (n, words)
    std::size_t n, words;
};

SPARSACT_DECLARE(
    // planes (n_planes, columns.words); counts (n_planes, family.size); n_threads <= 0: as many as
    // OpenMP would take.
    void parity_counts(PackedColumns columns, const std::uint64_t* planes, std::size_t n_planes,
                       Family family, std::int64_t* counts, int n_threads);)

}  // namespace sparsact
