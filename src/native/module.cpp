// The extension module: the choice of the instruction set, and the functions of all kernels. Arrays are
// trusted here: the functions of sparsact/kernels are the doors.
#include <nanobind/stl/string.h>

#include <atomic>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define SPARSACT_FORKS
#endif

#ifdef _OPENMP
#include <omp.h>
#endif

#include "bind.hpp"
#include "forks.hpp"
#include "isa.hpp"

namespace sparsact {

namespace {
Isa chosen = Isa::portable;
std::atomic<bool> lost{false};
}  // namespace

Isa current_isa() { return chosen; }

const char* isa_name(Isa isa) {
    return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "portable";
}

void use_isa(const std::string& name) {
    for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512})
        if (name == isa_name(isa)) {
            if (isa > widest_isa()) throw std::invalid_argument("this processor has no " + name);
            chosen = isa;
            return;
        }
    throw std::invalid_argument("SPARSACT_ISA=" + name + " is none of portable, avx2, avx512");
}

void remember_threads() {
#ifdef SPARSACT_FORKS
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { lost = true; });
#endif
}

bool lost_threads() { return lost; }

}  // namespace sparsact

NB_MODULE(_native, module) {
    const char* forced = std::getenv("SPARSACT_ISA");
    if (forced && *forced)
        sparsact::use_isa(forced);
    else
        sparsact::use_isa(sparsact::isa_name(sparsact::widest_isa()));
    module.def("isa", [] { return std::string(sparsact::isa_name(sparsact::current_isa())); });
    module.def("widest_isa", [] { return std::string(sparsact::isa_name(sparsact::widest_isa())); });
    module.def("use_isa", &sparsact::use_isa);
    module.def("max_threads", [] {
#ifdef _OPENMP
        return omp_get_max_threads();
#else
        return 1;
#endif
    });
#ifdef SPARSACT_CANARY
    module.def("read_past_the_end", [](size_t size) { return std::vector<char>(size).data()[size]; });
#endif
    for (const auto* each = sparsact::Bindings::first; each; each = each->next) each->define(module);
}
