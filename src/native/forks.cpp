#include "forks.hpp"

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define SPARSACT_FORKS
#endif

namespace sparsact {

namespace {
std::atomic<bool> lost{false};
}

void remember_threads() {
#ifdef SPARSACT_FORKS
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { lost = true; });
#endif
}

bool lost_threads() { return lost; }

}  // namespace sparsact
