#ifndef COMMON_BASE_END_PROCESS_H_
#define COMMON_BASE_END_PROCESS_H_

namespace muster {

// Ends the process with this exit code, without the destructors of static
// objects: all of ours are trivial or forgotten, but gRPC's threads may still
// drop their last references after our servers and channels are gone, and
// gRPC aborts if the C++ runtime destroys its globals meanwhile (exit code 134
// instead of the one that was meant). Flushes stdio. For the end of main.
[[noreturn]] void EndProcess(int exit_code);

}  // namespace muster

#endif  // COMMON_BASE_END_PROCESS_H_
