// Arrays as the kernels of buckets take them.
#pragma once

#include <nanobind/ndarray.h>

#include "hashing.hpp"

namespace sparsact {

template <class T, int dimensions>
using Array = nanobind::ndarray<T, nanobind::ndim<dimensions>, nanobind::c_contig, nanobind::device::cpu>;

using Numbers = Array<const double, 1>;
using Matrix = Array<const double, 2>;
using Cube = Array<const double, 3>;
using Keys = Array<const std::uint64_t, 1>;

inline Hashes hashes_of(const Numbers& centre, const Matrix& local, const Matrix& directions,
                        const Numbers& offsets, const Keys& seeds, bool grid, bool signs) {
    const std::size_t tables = seeds.shape(0), q = tables ? offsets.shape(0) / tables : 0;
    return {centre.data(),
            local.data(),
            directions.data(),
            offsets.data(),
            seeds.data(),
            centre.shape(0),
            local.shape(1),
            q,
            tables,
            grid,
            signs};
}

}  // namespace sparsact
