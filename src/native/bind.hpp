// One binding function per kernel; each lives in bind_<kernel>.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace sparsact {

void bind_bucket_index(nanobind::module_& module);
void bind_bucket_statistics(nanobind::module_& module);
void bind_bucket_values(nanobind::module_& module);
void bind_descent(nanobind::module_& module);
void bind_enumeration(nanobind::module_& module);
void bind_exact(nanobind::module_& module);
void bind_walsh_hadamard(nanobind::module_& module);
void bind_fingerprint(nanobind::module_& module);
void bind_flips(nanobind::module_& module);
void bind_gather(nanobind::module_& module);
void bind_hashing(nanobind::module_& module);
void bind_network_values(nanobind::module_& module);
void bind_neurons(nanobind::module_& module);
void bind_packed_bits(nanobind::module_& module);
void bind_parity_counts(nanobind::module_& module);
void bind_polynomial(nanobind::module_& module);
void bind_screen(nanobind::module_& module);
void bind_selection(nanobind::module_& module);
void bind_subset_rank(nanobind::module_& module);
void bind_symmetric_differences(nanobind::module_& module);

}  // namespace sparsact
