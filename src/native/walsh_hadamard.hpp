// Walsh-Hadamard transform of rows of length 2^n, in place, unnormalised. n_threads <= 0: as many as OpenMP
// allows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

SPARSACT_DECLARE(void walsh_hadamard(float* table, std::size_t rows, std::size_t length, int n_threads);
                 void walsh_hadamard(double* table, std::size_t rows, std::size_t length, int n_threads);
                 void walsh_hadamard(std::int32_t* table, std::size_t rows, std::size_t length,
                                     int n_threads);
                 void walsh_hadamard(std::int64_t* table, std::size_t rows, std::size_t length,
                                     int n_threads);)

}  // namespace sparsact
