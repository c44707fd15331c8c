#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "descent.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Column = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = Column<double>;

struct Run {
    Batches batches;
    Layer layer;
    RMSProp optimiser;

    Run(Column<const double> y, Column<const std::int64_t> order, Reals A, Reals velocity, Reals intercept,
        bool fit_intercept, std::size_t batch_size, double learning_rate, double rho, double epsilon)
        : batches{y.data(), order.data(), order.shape(0), batch_size},
          layer{A.data(), velocity.data(), fit_intercept ? intercept.data() : nullptr},
          optimiser{learning_rate, rho, epsilon} {}
};

template <class I>
void bind_compact(nb::module_& module) {
    module.def(
        "descend_compact",
        [](Table<float> values, Table<I> units, Column<const double> y, Column<const std::int64_t> order,
           Reals A, Reals velocity, Reals intercept, bool fit_intercept, std::size_t batch_size,
           double learning_rate, double rho, double epsilon) {
            const Run run(y, order, A, velocity, intercept, fit_intercept, batch_size, learning_rate, rho,
                          epsilon);
            const CompactFeatures<I> features{values.data(), units.data(), values.shape(1), A.shape(0)};
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(descend, features, run.batches, run.optimiser, run.layer);
        },
        nb::arg("values").noconvert(), nb::arg("units").noconvert(), nb::arg("y").noconvert(),
        nb::arg("order").noconvert(), nb::arg("A").noconvert(), nb::arg("velocity").noconvert(),
        nb::arg("intercept").noconvert(), nb::arg("fit_intercept"), nb::arg("batch_size"),
        nb::arg("learning_rate"), nb::arg("rho"), nb::arg("epsilon"));
}

}  // namespace

void bind_descent(nb::module_& module) {
    module.def(
        "descend_dense",
        [](Table<float> values, Column<const double> y, Column<const std::int64_t> order, Reals A,
           Reals velocity, Reals intercept, bool fit_intercept, std::size_t batch_size, double learning_rate,
           double rho, double epsilon) {
            const Run run(y, order, A, velocity, intercept, fit_intercept, batch_size, learning_rate, rho,
                          epsilon);
            const DenseFeatures features{values.data(), values.shape(1)};
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(descend, features, run.batches, run.optimiser, run.layer);
        },
        nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("order").noconvert(),
        nb::arg("A").noconvert(), nb::arg("velocity").noconvert(), nb::arg("intercept").noconvert(),
        nb::arg("fit_intercept"), nb::arg("batch_size"), nb::arg("learning_rate"), nb::arg("rho"),
        nb::arg("epsilon"));
    bind_compact<std::uint16_t>(module);
    bind_compact<std::uint32_t>(module);
}

}  // namespace sparsact
