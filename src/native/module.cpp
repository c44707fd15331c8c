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

#ifdef SPARSACT_X86
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

#include "bind.hpp"
#include "caches.hpp"
#include "forks.hpp"
#include "isa.hpp"

namespace sparsact {

namespace {
Isa chosen = Isa::portable;
bool vnni_allowed = true;
bool vnni = false;
bool amx_allowed = true;
unsigned cache_ways = first_cache_ways();

bool has_vnni([[maybe_unused]] Isa isa) {
#ifdef SPARSACT_X86
    if (isa == Isa::avx512) return __builtin_cpu_supports("avx512vnni");
    unsigned a = 0, b, c, d;  // __builtin_cpu_supports does not know AVX-VNNI in every compiler
    return isa == Isa::avx2 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
#else
    return false;
#endif
}

void allow_vnni(bool allowed) {
    vnni_allowed = allowed;
    vnni = allowed && has_vnni(chosen);
}

// Whether the processor has AMX, and the system gives its registers to this process.
bool has_amx() {
#if defined(SPARSACT_X86) && defined(__linux__)
    constexpr long ask_for_registers = 0x1023, tiles = 18;  // of arch_prctl
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 3) == 3 &&
           syscall(SYS_arch_prctl, ask_for_registers, tiles) == 0;
#else
    return false;
#endif
}

std::atomic<bool> lost{false};
}  // namespace

Isa current_isa() { return chosen; }

bool current_vnni() { return vnni; }

bool current_amx() {
    static const bool amx = has_amx();
    return amx && amx_allowed && vnni && chosen == Isa::avx512;
}

unsigned current_cache_ways() { return cache_ways; }

const char* isa_name(Isa isa) {
    return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "portable";
}

void use_isa(const std::string& name) {
    for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512})
        if (name == isa_name(isa)) {
            if (isa > widest_isa()) throw std::invalid_argument("this processor has no " + name);
            chosen = isa;
            allow_vnni(vnni_allowed);
            return;
        }
    throw std::invalid_argument("no instruction set " + name + ": portable, avx2 or avx512");
}

void remember_threads() {
#ifdef SPARSACT_FORKS
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { lost = true; });
#endif
}

bool lost_threads() { return lost; }

}  // namespace sparsact

NB_MODULE(_native, module) {
    sparsact::use_isa(sparsact::isa_name(sparsact::widest_isa()));
    module.def("isa", [] { return std::string(sparsact::isa_name(sparsact::current_isa())); });
    module.def("widest_isa", [] { return std::string(sparsact::isa_name(sparsact::widest_isa())); });
    module.def("use_isa", &sparsact::use_isa);
    module.def("vnni", &sparsact::current_vnni);
    module.def("allow_vnni", &sparsact::allow_vnni);
    module.def("amx", &sparsact::current_amx);
    module.def("allow_amx", [](bool allowed) { sparsact::amx_allowed = allowed; });
    module.def("cache_ways", &sparsact::current_cache_ways);
    module.def("use_cache_ways", [](unsigned ways) { sparsact::cache_ways = ways; });
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
