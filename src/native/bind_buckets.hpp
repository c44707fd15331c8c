// Arrays as the kernels of buckets take them.
#pragma once

#include <nanobind/stl/string.h>

#include <string>

#include "bind.hpp"
#include "bucket_statistics.hpp"
#include "combine.hpp"
#include "hashing.hpp"

namespace sparsact {

using Numbers = Array<const double, 1>;
using Matrix = Array<const double, 2>;
using Cube = Array<const double, 3>;
using Keys = Array<const std::uint64_t, 1>;
using Ids = Array<const std::int32_t, 2>;

inline Combine combine_of(const std::string& name) {
    return name == "first" ? Combine::first : Combine::average;
}

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

inline BucketRows rows_of(const Ids& ids, const Matrix& Z, const Cube& V, const Matrix& Y,
                          const Numbers& weights, int degree) {
    const bool apart = V.shape(1) == ids.shape(1);
    return {ids.data(),   Z.data(), V.data(),   Y.data(),   weights.data(), ids.shape(0),
            ids.shape(1), apart,    Z.shape(1), Y.shape(1), degree};
}

}  // namespace sparsact
