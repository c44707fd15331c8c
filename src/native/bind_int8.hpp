// Linear layers of int8 weights as Python holds them.
#pragma once

#include <vector>

#include "bind.hpp"
#include "int8_linear.hpp"

namespace sparsact {

// Holds the weights; inputs and outputs come as addresses, so that a call converts no array.
class Int8Linear {
  public:
    using Numbers = Array<const float, 1>;

    // `rows` (t, width), or tiles (tiles, 16 * width) of the rows of as many outputs as there are scales.
    Int8Linear(Array<const std::int8_t, 2> rows, Numbers scale, Numbers bias, std::size_t n, bool tiled)
        : rows_(rows), scale_(scale), bias_(bias), sums_(rows.shape(0) * (tiled ? 16 : 1)) {
        const std::size_t count = rows.shape(0), size = rows.shape(1);
        for (std::size_t j = 0; j < count; ++j)
            for (std::size_t k = 0; k < size; ++k)
                sums_[tiled ? 16 * j + k / 4 % 16 : j] += rows.data()[j * size + k];
        weights_ = {rows.data(),
                    scale.data(),
                    bias.data(),
                    sums_.data(),
                    tiled ? scale.shape(0) : count,
                    n,
                    tiled ? size / 16 : size,
                    tiled};
    }

    void rows(std::size_t x, std::size_t m, std::size_t out, int n_threads) const {
        run_rows(x, 0, m, out, n_threads);
    }
    void rows_at(std::size_t x, std::size_t mask, std::size_t m, std::size_t out, int n_threads) const {
        check_rows();
        run_rows(x, mask, m, out, n_threads);
    }
    std::int64_t columns(std::size_t h, std::size_t m, std::size_t out, int n_threads) const {
        check_rows();
        nb::gil_scoped_release unlocked;
        return SPARSACT_DISPATCH(int8_columns, weights_, reinterpret_cast<const float*>(h), m,
                                 reinterpret_cast<float*>(out), n_threads);
    }

  private:
    void check_rows() const {
        if (weights_.tiled)
            throw std::invalid_argument("tiles are read whole: pass rows to read some of them");
    }
    void run_rows(std::size_t x, std::size_t mask, std::size_t m, std::size_t out, int n_threads) const {
        nb::gil_scoped_release unlocked;
        SPARSACT_DISPATCH(int8_rows, weights_, reinterpret_cast<const float*>(x),
                          reinterpret_cast<const std::uint8_t*>(mask), m, reinterpret_cast<float*>(out),
                          n_threads);
    }

    Array<const std::int8_t, 2> rows_;  // these keep the memory alive
    Numbers scale_, bias_;
    std::vector<std::int32_t> sums_;
    Int8Weights weights_;
};

}  // namespace sparsact
