#ifndef COMMON_PROCESS_PROCESS_SETUP_H_
#define COMMON_PROCESS_PROCESS_SETUP_H_

namespace muster {

// Makes this process what both binaries need. Call it first in main.
//
// A file beyond the limit of its size, and a pipe that nobody reads (`| head`),
// are errors of the call that writes, and not a signal that ends the process
// without a word. SIGHUP, SIGUSR1 and the like end it as SIGTERM does
// (stop_signals.h). The process may have as many file descriptors as it may ask
// for: the usual limit of 1,024 is there for programs that select(2). Freed
// memory is kept. Where address space is limited, threads reserve less of it.
void SetUpProcess();

// Has the process keep the memory of freed tensors for the next ones, instead
// of asking the system for fresh pages: push and pull of 13 MB become 2.6 times
// faster. Call it first in main, where SetUpProcess is not.
void KeepFreedMemory();

// Debian builds Abseil as for tests: each lock is looked up in a graph of
// locks, and an order that might end in a deadlock aborts the process.
void LockWithoutChecks();

}  // namespace muster

#endif  // COMMON_PROCESS_PROCESS_SETUP_H_
