// The screen of a layer as Python holds it.
#pragma once

#include "bind.hpp"
#include "screen.hpp"

namespace sparsact {

// Holds the int8 copy. Inputs are float32, bfloat16 or float16: kinds 0, 1 and 2. They and outputs come as
// addresses, so that a call converts no array.
class Screen {
  public:
    using Numbers = Array<const double, 1>;
    using Floats = Array<const float, 2>;

    Screen(Array<const std::uint8_t, 2> rows, Numbers a, Numbers Q, Numbers R, Numbers offset, Floats along,
           Numbers columns, Floats directions, double leak)
        : rows_(rows),
          a_(a),
          Q_(Q),
          R_(R),
          offset_(offset),
          columns_(columns),
          along_(along),
          directions_(directions),
          sketch_{rows.data(),   a.data(),      Q.data(),         R.data(),
                  offset.data(), along.data(),  columns.data(),   directions.data(),
                  leak,          rows.shape(0), columns.shape(0), directions.shape(0),
                  rows.shape(1)} {}

    void survivors(std::size_t x, int kind, std::size_t m, std::size_t out, std::size_t counts,
                   int n_threads) const {
        auto* mask = reinterpret_cast<std::uint8_t*>(out);
        auto* count = reinterpret_cast<std::int64_t*>(counts);
        with_input(x, kind, [&](auto X) {
            SPARSACT_DISPATCH(screen_survivors, sketch_, X, m, mask, count, n_threads);
        });
    }
    void bounds(std::size_t x, int kind, std::size_t m, std::size_t out, int n_threads) const {
        with_input(x, kind, [&](auto X) {
            SPARSACT_DISPATCH(screen_bounds, sketch_, X, m, reinterpret_cast<double*>(out), n_threads);
        });
    }
    void estimates(std::size_t x, int kind, std::size_t m, std::size_t out, int n_threads) const {
        with_input(x, kind, [&](auto X) {
            SPARSACT_DISPATCH(screen_estimates, sketch_, X, m, reinterpret_cast<float*>(out), n_threads);
        });
    }

    const Sketch& sketch() const { return sketch_; }

  private:
    template <class F>
    void with_input(std::size_t x, int kind, F f) const {
        nb::gil_scoped_release unlocked;
        if (kind == 2)
            f(reinterpret_cast<const Float16*>(x));
        else if (kind == 1)
            f(reinterpret_cast<const Bfloat16*>(x));
        else
            f(reinterpret_cast<const float*>(x));
    }

    // They keep the memory alive.
    Array<const std::uint8_t, 2> rows_;
    Numbers a_, Q_, R_, offset_, columns_;
    Floats along_, directions_;
    Sketch sketch_;
};

}  // namespace sparsact
