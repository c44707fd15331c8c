#include "walsh_hadamard.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

template <class T>
void transform(T* row, std::size_t length) {
    for (std::size_t half = 1; half < length; half *= 2)
        for (std::size_t start = 0; start < length; start += 2 * half)
            for (std::size_t i = start; i < start + half; ++i) {
                const T sum = row[i] + row[i + half];
                row[i + half] = row[i] - row[i + half];
                row[i] = sum;
            }
}

template <class T>
void transform_rows(T* table, std::size_t rows, std::size_t length, int) {
    for (std::size_t row = 0; row < rows; ++row) transform(table + row * length, length);
}

}  // namespace

void walsh_hadamard(float* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }
void walsh_hadamard(double* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }
void walsh_hadamard(std::int32_t* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }
void walsh_hadamard(std::int64_t* t, std::size_t r, std::size_t l, int n) { transform_rows(t, r, l, n); }

}  // namespace sparsact::SPARSACT_ISA
