// What the Python face of each kernel needs. A kernel's file registers its functions itself.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace sparsact {

template <class T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// A list of what the module has to call; each file adds one entry as the library is loaded.
struct Bindings {
    explicit Bindings(void (*define)(nb::module_&)) : define(define), next(first) { first = this; }
    void (*define)(nb::module_&);
    Bindings* next;
    static inline Bindings* first = nullptr;
};

}  // namespace sparsact

// SPARSACT_BINDINGS(module) { module.def(...); }
#define SPARSACT_BINDINGS(module)                     \
    static void define_bindings(nb::module_& module); \
    static Bindings bindings(define_bindings);        \
    static void define_bindings(nb::module_& module)
