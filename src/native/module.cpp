// The Python face of the native kernels. Arrays are trusted here: kernels/dispatch.py and kernels/networks.py
// are the doors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "bind.hpp"
#include "isa.hpp"

namespace sparsact {

namespace {
Isa chosen = Isa::portable;
}

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
    sparsact::bind_bucket_index(module);
    sparsact::bind_bucket_statistics(module);
    sparsact::bind_bucket_values(module);
    sparsact::bind_descent(module);
    sparsact::bind_enumeration(module);
    sparsact::bind_exact(module);
    sparsact::bind_walsh_hadamard(module);
    sparsact::bind_fingerprint(module);
    sparsact::bind_flips(module);
    sparsact::bind_gather(module);
    sparsact::bind_hashing(module);
    sparsact::bind_network_values(module);
    sparsact::bind_neurons(module);
    sparsact::bind_packed_bits(module);
    sparsact::bind_parity_counts(module);
    sparsact::bind_polynomial(module);
    sparsact::bind_screen(module);
    sparsact::bind_selection(module);
    sparsact::bind_subset_rank(module);
    sparsact::bind_symmetric_differences(module);
}
