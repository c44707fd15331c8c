// Values of an ensemble of regression trees at rows. Leaves are added tree by tree: every instruction set and
// number of threads gives the same bits.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct TreeNodes {
    const std::int32_t *columns, *left, *right;  // (n,); children: -1 - leaf for a leaf
    const double* thresholds;                    // (n,)
    const double* leaves;                        // (n_leaves,)
    const std::int32_t *roots, *targets;         // (n_trees,)
    std::size_t n_trees, n_targets;
};

SPARSACT_DECLARE(
    // values (m, targets) += the leaf of each tree at X (m, d); a row goes left where its column is not above
    // the threshold.
    void tree_values(const double* X, std::size_t m, std::size_t d, TreeNodes nodes, double* values,
                     int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>

#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t ROWS = 256;  // that a tree sees at once, while its nodes are in the cache

double leaf_of(const double* x, const TreeNodes& nodes, std::int32_t node) {
    while (node >= 0)
        node = x[nodes.columns[node]] <= nodes.thresholds[node] ? nodes.left[node] : nodes.right[node];
    return nodes.leaves[-1 - node];
}

}  // namespace

void tree_values(const double* X, std::size_t m, std::size_t d, TreeNodes nodes, double* values,
                 int n_threads) {
    in_parallel(available_threads(n_threads), (m + ROWS - 1) / ROWS, [&](std::size_t task) {
        const std::size_t begin = task * ROWS, end = std::min(m, begin + ROWS);
        for (std::size_t t = 0; t < nodes.n_trees; ++t) {
            const std::size_t target = static_cast<std::size_t>(nodes.targets[t]);
            for (std::size_t i = begin; i < end; ++i)
                values[i * nodes.n_targets + target] += leaf_of(X + i * d, nodes, nodes.roots[t]);
        }
    });
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Ints = Array<const std::int32_t, 1>;
    using Reals = Array<const double, 1>;
    module.def(
        "tree_values",
        [](Array<const double, 2> X, Ints columns, Reals thresholds, Ints left, Ints right, Reals leaves,
           Ints roots, Ints targets, Array<double, 2> values, int n_threads) {
            const TreeNodes nodes{columns.data(),    left.data(),    right.data(),
                                  thresholds.data(), leaves.data(),  roots.data(),
                                  targets.data(),    roots.shape(0), values.shape(1)};
            const double* rows = X.data();
            double* out = values.data();
            const std::size_t m = X.shape(0), d = X.shape(1);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(tree_values, rows, m, d, nodes, out, n_threads);
        },
        nb::arg("X"), nb::arg("columns"), nb::arg("thresholds"), nb::arg("left"), nb::arg("right"),
        nb::arg("leaves"), nb::arg("roots"), nb::arg("targets"), nb::arg("values").noconvert(),
        nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
