#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "polynomial.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Polynomials polynomials_of(const Table<const std::uint64_t>& masks, const Table<const double>& coefficients) {
    return {{masks.data(), masks.shape(0), masks.shape(1)}, coefficients.data(), coefficients.shape(1)};
}

}  // namespace

void bind_polynomial(nb::module_& module) {
    using Reals = Table<const double>;
    using Words = Table<const std::uint64_t>;
    module.def(
        "evaluate",
        [](Reals X, Words masks, Reals coefficients, Table<double> values, int n_threads) {
            const RealPoints points{X.data(), X.shape(0), X.shape(1)};
            const Polynomials polynomials = polynomials_of(masks, coefficients);
            double* out = values.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(evaluate, points, polynomials, out, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("masks").noconvert(), nb::arg("coefficients").noconvert(),
        nb::arg("values").noconvert(), nb::arg("n_threads"));
    module.def(
        "evaluate_packed",
        [](Words columns, Words masks, Reals coefficients, Table<double> values, int n_threads) {
            const PackedPoints points{columns.data(), values.shape(0), columns.shape(0)};
            const Polynomials polynomials = polynomials_of(masks, coefficients);
            double* out = values.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(evaluate, points, polynomials, out, n_threads);
        },
        nb::arg("columns").noconvert(), nb::arg("masks").noconvert(), nb::arg("coefficients").noconvert(),
        nb::arg("values").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact
