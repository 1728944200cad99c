#include "common/process/exhaustion.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "common/process/exit_code.h"

namespace muster {
namespace {

const char* program_name = "";
constexpr char kMoreMemory[] =
    "take a smaller model or batch, or raise the limit (ulimit -v)";
// A thread's stack.
constexpr size_t kProbeBytes = 8 << 20;

[[noreturn]] void End(const char* what, const char* why, const char* advice) {
  std::fprintf(stderr, "%s: no more %s: %s; %s\n", program_name, what, why,
               advice);
  std::fflush(nullptr);
  // Other threads go on: nothing that they use may be destroyed.
  _exit(kExitBadConfig);
}

// Instead of std::abort, on the thread that threw.
[[noreturn]] void OnTerminate() {
  const std::exception_ptr thrown = std::current_exception();
  if (thrown == nullptr) std::abort();
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc& error) {
    End("memory", error.what(), kMoreMemory);
  } catch (const std::system_error& error) {
    End("threads", error.what(),
        "ask for fewer, or raise the limit (ulimit -u, ulimit -v)");
  } catch (...) {
    std::abort();
  }
}

// gRPC and other libraries in C abort where they get no memory, or no file
// descriptor. If there is none, that was why; else the abort goes on.
void OnAbort(int /*signal*/) {
  void* const probe = mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) {
    End("memory", "a library aborted, and there is no room for a thread",
        kMoreMemory);
  }
  munmap(probe, kProbeBytes);
  const int descriptor = dup(STDERR_FILENO);
  if (descriptor < 0 && errno == EMFILE) {
    End("file descriptors", "a library aborted, and none is left",
        "raise the limit (ulimit -Hn)");
  }
  close(descriptor);
}

}  // namespace

void ExplainExhaustion(const char* program) {
  program_name = program;
  std::set_terminate(&OnTerminate);
  std::signal(SIGABRT, &OnAbort);
}

}  // namespace muster
