#include "common/process/exhaustion.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "common/process/exit_code.h"

namespace muster {
namespace {

const char* program_name = "";

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
    End("memory", error.what(),
        "take a smaller model or batch, or raise the limit (ulimit -v)");
  } catch (const std::system_error& error) {
    End("threads", error.what(),
        "ask for fewer, or raise the limit (ulimit -u, ulimit -v)");
  } catch (...) {
    std::abort();
  }
}

}  // namespace

void ExplainExhaustion(const char* program) {
  program_name = program;
  std::set_terminate(&OnTerminate);
}

}  // namespace muster
