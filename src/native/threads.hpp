// Threads by OpenMP, where the compiler has it; else one.
#pragma once

#include <algorithm>
#include <cstddef>

#include "forks.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace sparsact::SPARSACT_ISA {

constexpr int MOST_THREADS = 1024;  // more than OpenMP can make end the process

// `wanted` threads; 0 or less asks OpenMP, and so obeys OMP_NUM_THREADS and threadpoolctl. One thread in a
// process whose parent had several: OpenMP's threads do not survive a fork.
inline int available_threads(int wanted) {
#ifdef _OPENMP
    const int number =
        lost_threads() ? 1 : std::min(wanted > 0 ? wanted : omp_get_max_threads(), MOST_THREADS);
    if (number > 1) remember_threads();
    return number;
#else
    (void)wanted;
    return 1;
#endif
}

// Calls f(0), ..., f(tasks - 1), in any order.
template <class F>
void in_parallel(int n_threads, std::size_t tasks, F f) {
    if (n_threads == 1) {
        for (std::size_t task = 0; task < tasks; ++task) f(task);
        return;
    }
    const std::ptrdiff_t end = static_cast<std::ptrdiff_t>(tasks);  // OpenMP of old wants a signed index
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(n_threads)
#endif
    for (std::ptrdiff_t task = 0; task < end; ++task) f(static_cast<std::size_t>(task));
}

// Calls f(begin, end) with a share of `size` for each thread.
template <class F>
void in_shares(int n_threads, std::size_t size, F f) {
    const std::size_t tasks = std::min(size, static_cast<std::size_t>(available_threads(n_threads)));
    in_parallel(static_cast<int>(tasks), tasks,
                [&](std::size_t task) { f(task * size / tasks, (task + 1) * size / tasks); });
}

}  // namespace sparsact::SPARSACT_ISA
