// A process that was forked after its parent had OpenMP threads has none of them, and would wait for them.
#pragma once

namespace sparsact {

// To be said before threads are made.
void remember_threads();

// Whether this process lost the threads of its parent: it then has to work alone.
bool lost_threads();

}  // namespace sparsact
