// Units with few inputs each, as the three parts of a CSR array.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsact {

// Unit j has the weights [starts[j], starts[j + 1]).
struct SparseUnits {
    const std::int64_t* starts;
    const std::int32_t* inputs;
    const double* weights;
    std::size_t s;
};

}  // namespace sparsact
