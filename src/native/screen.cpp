#include "screen.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>

#include "packed_screen.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

// Calls put(i, j, value) for every input and row, where values(parts, input) holds WIDTH rows.
template <class T, class V, class F>
void for_every_value(const Sketch& sketch, const T* X, std::size_t m, int n_threads, V values, F put) {
    if (m == 0 || sketch.s == 0) return;
    const int threads = available_threads(n_threads);
    const Inputs inputs(sketch, X, m, 0, threads);
    in_parallel(threads, tiles_of(sketch), [&](std::size_t tile) {
        for_every_part(sketch, inputs, m, tile, tile + 1,
                       [&](std::size_t i, std::size_t j, const Parts& parts) {
                           double found[WIDTH];
                           store(found, values(parts, inputs.data()[i]));
                           for (std::size_t l = 0; l < WIDTH && j + l < sketch.s; ++l)
                               put(i, j + l, found[l]);
                       });
    });
}

// U of rows, as real numbers have it.
constexpr auto real_bound = [](const Parts& parts, const Input& input) {
    return upper(parts, input, slack(parts, input, SLACK, 0));
};

}  // namespace

template <class T>
void screen_survivors(const Sketch& sketch, const T* X, std::size_t m, std::uint8_t* survivors,
                      std::int64_t* counts, int n_threads) {
    for_every_value(sketch, X, m, n_threads, real_bound, [&](std::size_t i, std::size_t j, double bound) {
        survivors[i * sketch.s + j] = !(bound <= 0);  // a NaN proves nothing
    });
    for (std::size_t i = 0; i < m; ++i)
        counts[i] = std::count(survivors + i * sketch.s, survivors + (i + 1) * sketch.s, std::uint8_t{1});
}

template <class T>
void screen_bounds(const Sketch& sketch, const T* X, std::size_t m, double* bounds, int n_threads) {
    for_every_value(sketch, X, m, n_threads, real_bound,
                    [&](std::size_t i, std::size_t j, double bound) { bounds[i * sketch.s + j] = bound; });
}

template <class T>
void screen_estimates(const Sketch& sketch, const T* X, std::size_t m, float* estimates, int n_threads) {
    const auto estimate = [](const Parts& parts, const Input& input) {  // NaN of an input that is not finite
        return input.b * (parts.sum + 0 * input.N) + parts.offset;
    };
    for_every_value(sketch, X, m, n_threads, estimate, [&](std::size_t i, std::size_t j, double value) {
        estimates[i * sketch.s + j] = static_cast<float>(value);
    });
}

#define SPARSACT_INSTANTIATE(T)                                                                              \
    template void screen_survivors(const Sketch&, const T*, std::size_t, std::uint8_t*, std::int64_t*, int); \
    template void screen_bounds(const Sketch&, const T*, std::size_t, double*, int);                         \
    template void screen_estimates(const Sketch&, const T*, std::size_t, float*, int);
SPARSACT_INSTANTIATE(float)
SPARSACT_INSTANTIATE(Bfloat16)
SPARSACT_INSTANTIATE(Float16)

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind_screen.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<Screen>(module, "Screen")
        .def(nb::init<Array<const std::uint8_t, 2>, Screen::Numbers, Screen::Numbers, Screen::Numbers,
                      Screen::Numbers, Screen::Floats, Screen::Numbers, Screen::Floats, double>(),
             nb::arg("rows"), nb::arg("a"), nb::arg("Q"), nb::arg("R"), nb::arg("offset"), nb::arg("along"),
             nb::arg("columns"), nb::arg("directions"), nb::arg("leak"))
        .def("survivors", &Screen::survivors)
        .def("bounds", &Screen::bounds)
        .def("estimates", &Screen::estimates);
}

}  // namespace sparsact

#endif
