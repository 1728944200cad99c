#ifndef COMMON_PROCESS_END_PROCESS_H_
#define COMMON_PROCESS_END_PROCESS_H_

namespace muster {

// Ends the process with this exit code, without the destructors of static
// objects: gRPC keeps threads of its own to the end (its last clean-up may run
// on a detached one: src/core/lib/surface/init.cc, grpc_shutdown), and what
// they use must not be destroyed under them, or the exit code becomes another
// than was meant. Flushes stdio. For the end of main.
[[noreturn]] void EndProcess(int exit_code);

}  // namespace muster

#endif  // COMMON_PROCESS_END_PROCESS_H_
