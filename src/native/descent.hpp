// An epoch of RMSProp on the squared loss of a linear layer over features that never change.
//
// Features are float32, all else double. Reading them is the cost: a batch comes from memory once, asked for
// while the batch before it is worked on, and its second pass finds it in the cache. The order of every sum
// is fixed, so every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct DenseFeatures {
    const float* values;  // (m, t)
    std::size_t t;
};

// The a active units of each row, each once, and their values.
template <class I>
struct CompactFeatures {
    const float* values;  // (m, a)
    const I* units;       // (m, a), less than t
    std::size_t a, t;
};

struct Layer {
    double *A, *velocity;  // (t,)
    double* intercept;     // and its velocity, or null for a layer without
};

struct Batches {
    const double* y;            // (m,)
    const std::int64_t* order;  // (m,)
    std::size_t m, size;
};

struct RMSProp {
    double learning_rate, rho, epsilon;
};

SPARSACT_DECLARE(
    // Changes the layer, a step a batch; returns the sum of the squared errors as they were met.
    template <class Features>
    double descend(Features features, Batches batches, RMSProp optimiser, Layer layer);)

}  // namespace sparsact
