#include "bind.hpp"
#include "bind_buckets.hpp"
#include "bucket_values.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

using Values = Array<double, 2>;
using Totals = Array<double, 1>;

BucketPolynomials polynomials_of(const Array<const std::uint64_t, 2>& slots, int degree,
                                 const Cube& coefficients, const Numbers& weights) {
    return {{slots.data(), slots.shape(0)}, coefficients.data(),   weights.data(), weights.shape(0),
            coefficients.shape(1),          coefficients.shape(2), degree};
}

// All that bucket_values takes but the rows: a call then converts three arrays, not fourteen.
class BucketPredictor {
  public:
    BucketPredictor(Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
                    bool signs, Array<const std::uint64_t, 2> slots, int degree, Cube coefficients,
                    Numbers weights, Matrix trend, bool average)
        : hashes_(hashes_of(centre, local, directions, offsets, seeds, grid, signs)),
          buckets_(polynomials_of(slots, degree, coefficients, weights)),
          trend_values_(trend.data()),
          average_(average),
          centre_(centre),
          offsets_(offsets),
          weights_(weights),
          local_(local),
          directions_(directions),
          trend_(trend),
          seeds_(seeds),
          slots_(slots),
          coefficients_(coefficients) {}

    void operator()(Matrix X, Values values, Totals total, int n_threads) const {
        const double* rows = X.data();
        const std::size_t m = X.shape(0);
        double *out = values.data(), *behind = total.data();
        nb::gil_scoped_release unlocked;
        SPARSACT_DISPATCH(bucket_values, rows, m, hashes_, buckets_, trend_values_, average_, out, behind,
                          n_threads);
    }

  private:
    Hashes hashes_;
    BucketPolynomials buckets_;
    const double* trend_values_;
    bool average_;
    // They keep the memory alive.
    Numbers centre_, offsets_, weights_;
    Matrix local_, directions_, trend_;
    Keys seeds_;
    Array<const std::uint64_t, 2> slots_;
    Cube coefficients_;
};

}  // namespace

void bind_bucket_values(nb::module_& module) {
    module.def(
        "bucket_values",
        [](Matrix X, Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
           bool signs, Array<const std::uint64_t, 2> slots, int degree, Cube coefficients, Numbers weights,
           Matrix trend, bool average, Values values, Totals total, int n_threads) {
            const BucketPredictor predict(centre, local, directions, offsets, seeds, grid, signs, slots,
                                          degree, coefficients, weights, trend, average);
            predict(X, values, total, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("centre"), nb::arg("local"), nb::arg("directions"),
        nb::arg("offsets"), nb::arg("seeds"), nb::arg("grid"), nb::arg("signs"), nb::arg("slots"),
        nb::arg("degree"), nb::arg("coefficients"), nb::arg("weights"), nb::arg("trend"), nb::arg("average"),
        nb::arg("values").noconvert(), nb::arg("total").noconvert(), nb::arg("n_threads"));
    nb::class_<BucketPredictor>(module, "BucketPredictor")
        .def(nb::init<Numbers, Matrix, Matrix, Numbers, Keys, bool, bool, Array<const std::uint64_t, 2>, int,
                      Cube, Numbers, Matrix, bool>(),
             nb::arg("centre"), nb::arg("local"), nb::arg("directions"), nb::arg("offsets"), nb::arg("seeds"),
             nb::arg("grid"), nb::arg("signs"), nb::arg("slots"), nb::arg("degree"), nb::arg("coefficients"),
             nb::arg("weights"), nb::arg("trend"), nb::arg("average"))
        .def("__call__", &BucketPredictor::operator(), nb::arg("X").noconvert(),
             nb::arg("values").noconvert(), nb::arg("total").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact
