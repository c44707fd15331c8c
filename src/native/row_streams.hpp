// Products of inputs with some rows of a quantised matrix, which are read from memory: four rows side by
// side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "threads.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr int AT_ONCE = 4;  // rows that are read side by side
constexpr std::size_t MAX_INPUTS = 4, INPUTS_AT_ONCE = widest_bytes == 64 ? MAX_INPUTS : 2;
constexpr std::size_t WORTH_A_THREAD = 32;  // rows to add up

// fma(raw, s * scale, bias) for each output, the products of torch's output stage. A product of scales that
// overflows counts as the largest float, so that a sum of 0 adds nothing; NaN stays NaN.
inline void put_outputs(const std::int32_t* raw, float s, const float* scale, const float* bias,
                        std::size_t count, float* out) {
    for (std::size_t j = 0; j < count; ++j)
        out[j] = std::fma(static_cast<float>(raw[j]),
                          std::min(s * scale[j], std::numeric_limits<float>::max()), bias[j]);
}

// f(j) for each of the codes that is not `zero`; eight of them are looked at together.
template <class F>
void for_each_other(const void* codes, std::size_t count, std::uint8_t zero, F f) {
    const std::uint8_t* bytes = static_cast<const std::uint8_t*>(codes);
    const std::uint64_t zeros = 0x0101010101010101u * zero;
    for (std::size_t first = 0; first < count; first += 8) {
        const std::size_t end = std::min(first + 8, count);
        std::uint64_t eight = zeros;
        std::memcpy(&eight, bytes + first, end - first);
        for (std::size_t j = first; eight != zeros && j < end; ++j)
            if (bytes[j] != zero) f(j);
    }
}

// put(j, <row j, input>) for the rows j that a mask (t,) names: multiply(rows, sums) gives the products of
// some rows, ask(j) prefetches one.
template <class Multiply, class Ask, class Put>
void multiply_masked_rows(const std::uint8_t* mask, std::size_t t, int n_threads, Multiply multiply, Ask ask,
                          Put put) {
    std::vector<std::size_t> taken;
    for (std::size_t j = 0; j < t; ++j)
        if (mask[j]) taken.push_back(j);
    in_shares(n_threads, (taken.size() + AT_ONCE - 1) / AT_ONCE, [&](std::size_t begin, std::size_t end) {
        const auto row = [&](std::size_t p) { return taken[std::min(p, taken.size() - 1)]; };
        for (std::size_t p = begin * AT_ONCE; p < end * AT_ONCE; p += AT_ONCE) {
            std::size_t rows[AT_ONCE];
            std::int32_t sums[AT_ONCE];
            for (std::size_t r = 0; r < AT_ONCE; ++r) {
                rows[r] = row(p + r);
                ask(row(p + r + AT_ONCE));
            }
            multiply(rows, sums);
            for (std::size_t r = 0; r < AT_ONCE && p + r < taken.size(); ++r) put(rows[r], sums[r]);
        }
    });
}

// sums (width,) += what add(begin, end, sums) adds for all of `count` rows, each thread for some of them.
template <class Add>
void add_in_threads(std::size_t count, std::size_t width, std::int32_t* sums, int n_threads, Add add) {
    const std::size_t tasks = std::clamp<std::size_t>(count / WORTH_A_THREAD, 1,
                                                      static_cast<std::size_t>(available_threads(n_threads)));
    std::vector<std::int32_t> others((tasks - 1) * width);
    in_parallel(static_cast<int>(tasks), tasks, [&](std::size_t task) {
        add(task, tasks, task ? others.data() + (task - 1) * width : sums);
    });
    for (std::size_t task = 1; task < tasks; ++task)
        for (std::size_t k = 0; k < width; ++k) sums[k] += others[(task - 1) * width + k];
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
