#include "common/process/end_process.h"

#include <unistd.h>

#include <cstdio>

namespace muster {

void EndProcess(int exit_code) {
  std::fflush(nullptr);
  _exit(exit_code);
}

}  // namespace muster
