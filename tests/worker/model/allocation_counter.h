#ifndef TESTS_WORKER_MODEL_ALLOCATION_COUNTER_H_
#define TESTS_WORKER_MODEL_ALLOCATION_COUNTER_H_

#include <string>

namespace muster {

// Replaces malloc, operator new and their kin in the binary that links it, so
// that what libraries allocate is seen too. oneDNN's own execute makes a few
// small nodes a call (its map of arguments) and its matrix product packs
// operands, which no caller can avoid: those are told apart by the caller's
// address and not counted up to a limit. Nor is what a test's own fake does:
// tests/testing/allocation_pause.h.
void StartCountingAllocations();

// False under a sanitizer that replaces malloc itself.
bool CanCountAllocations();

// Allocations of any thread since the start.
int StopCountingAllocations();

// "16640 bytes by oneDNN": of those that were counted.
std::string LargestAllocation();

}  // namespace muster

#endif  // TESTS_WORKER_MODEL_ALLOCATION_COUNTER_H_
