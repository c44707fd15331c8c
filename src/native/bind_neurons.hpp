// Weights of the neurons of a layer as Python holds them.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "bind_screen.hpp"
#include "neurons.hpp"

namespace sparsact {

using Address = std::uintptr_t;
using Weights = Array<nb::ro, 2>;
using Bias = std::optional<Array<nb::ro, 1>>;

template <class T>
T* at(Address address) {
    return reinterpret_cast<T*>(address);
}

// Weights that are held, not copied. Called with addresses, which cost less to convert than arrays.
class Neurons {
  public:
    // bfloat16 comes as uint16, which NumPy has; with `wide` numbers are float32 where weights are bfloat16.
    Neurons(Weights rows, Bias bias, bool wide) : rows_(rows), bias_(bias), wide_(wide) {}

  protected:
    // Calls f with the units of the types that the weights have.
    template <class F>
    auto with_units(F f) const {
        if (rows_.dtype() == nb::dtype<double>()) return f(units<double, double>());
        if (rows_.dtype() == nb::dtype<float>()) return f(units<float, float>());
        if (rows_.dtype() == FLOAT16) return f(units<Float16, Float16>());
        if (wide_) return f(units<float, Bfloat16>());
        return f(units<Bfloat16, Bfloat16>());
    }

  private:
    static constexpr nb::dlpack::dtype FLOAT16{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16,
                                               1};

    template <class T, class S>
    Units<T, S> units() const {
        const void* bias = bias_ ? bias_->data() : nullptr;
        return {static_cast<const S*>(rows_.data()), static_cast<const T*>(bias), rows_.shape(0),
                rows_.shape(1)};
    }

    Weights rows_;
    Bias bias_;
    bool wide_;
};

class SparseProduct : public Neurons {
  public:
    using Neurons::Neurons;

    std::size_t operator()(Address h, std::size_t m, Address out, int n_threads, std::size_t most) const {
        nb::gil_scoped_release unlocked;
        return with_units([&](auto V) { return run(V, h, m, out, n_threads, most); });
    }

  private:
    template <class T, class S>
    static std::size_t run(Units<T, S> V, Address h, std::size_t m, Address out, int n_threads,
                           std::size_t most) {
        return SPARSACT_DISPATCH(sparse_product, at<const T>(h), m, V, at<T>(out), most, n_threads);
    }
};

class ActiveDot : public Neurons {
  public:
    using Neurons::Neurons;

    std::size_t where_nonzero(Address x, Address on, std::size_t m, Address out, int n_threads,
                              std::size_t most) const {
        nb::gil_scoped_release unlocked;
        return with_units([&](auto W) { return run(W, x, numbers_like(W, on), m, out, n_threads, most); });
    }

    std::size_t where_masked(Address x, Address on, std::size_t m, Address out, int n_threads,
                             std::size_t most) const {
        nb::gil_scoped_release unlocked;
        return with_units(
            [&](auto W) { return run(W, x, at<const std::uint8_t>(on), m, out, n_threads, most); });
    }

    // Computes the units that the screen, for float32 and halves only, does not prove to be off.
    std::size_t where_unproved(const Screen& screen, Address x, std::size_t m, Address out, int n_threads,
                               std::size_t most) const {
        nb::gil_scoped_release unlocked;
        return with_units([&](auto W) { return run(W, x, screen.sketch(), m, out, n_threads, most); });
    }

  private:
    template <class T, class S>
    static std::size_t run(Units<T, S> W, Address x, const Sketch& screen, std::size_t m, Address out,
                           int n_threads, std::size_t most) {
        if constexpr (std::is_same_v<T, double>) {
            return m * W.s + 1;
        } else {
            thread_local std::vector<std::uint8_t> mask;  // kept from call to call
            thread_local std::vector<std::int64_t> counts;
            mask.resize(m * W.s);
            counts.resize(m);
            SPARSACT_DISPATCH(screen_survivors, screen, at<const T>(x), m, mask.data(), counts.data(),
                              n_threads);
            return run(W, x, static_cast<const std::uint8_t*>(mask.data()), m, out, n_threads, most);
        }
    }
    template <class T, class S>
    static const T* numbers_like(const Units<T, S>&, Address address) {
        return at<const T>(address);
    }
    template <class T, class S, class M>
    static std::size_t run(Units<T, S> W, Address x, const M* on, std::size_t m, Address out, int n_threads,
                           std::size_t most) {
        return SPARSACT_DISPATCH(active_dot, at<const T>(x), on, m, W, at<T>(out), most, n_threads);
    }
};

}  // namespace sparsact
