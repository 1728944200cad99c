#ifndef TESTS_WORKER_MODEL_ALLOCATION_COUNTER_H_
#define TESTS_WORKER_MODEL_ALLOCATION_COUNTER_H_

namespace muster {

// Replaces malloc, operator new and their kin in the binary that compiles it
// in, so that what libraries allocate is seen too. oneDNN's own execute makes a
// few small nodes a call (its map of arguments) and a small panel for a matrix
// product, which no caller can avoid: those are told apart by the caller's
// address and not counted while they stay small.
void StartCountingAllocations();

// Allocations of any thread since the start.
int StopCountingAllocations();

}  // namespace muster

#endif  // TESTS_WORKER_MODEL_ALLOCATION_COUNTER_H_
