// musterctl: looks at clusters, trainings and their checkpoints. See README.md.

#include <cstdio>
#include <string>
#include <vector>

#include "common/base/logging.h"
#include "common/base/printing.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/process/end_process.h"
#include "common/process/exhaustion.h"
#include "common/process/process_setup.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

int Main(const std::vector<std::string>& args) {
  SetUpProcess();
  PosixFileSystem file_system;
  // The log is stderr's; stdout is the verb's.
  SetUpLogging(LogOptions()).IgnoreError();  // The level is a known one.
  const VerbResult result =
      RunVerb(args, &file_system, MakePrinting(PrintingOptions()));
  std::fputs(result.out.c_str(), stdout);
  std::fputs(result.error.c_str(), stderr);
  return result.exit_code;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::ExplainExhaustion("musterctl");
  muster::EndProcess(
      muster::Main(std::vector<std::string>(argv + 1, argv + argc)));
}
