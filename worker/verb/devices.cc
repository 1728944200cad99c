#include <cstdio>
#include <string>

#include "common/process/exit_code.h"
#include "common/rpc/server/task_flags.h"
#include "worker/tower/device_names.h"
#include "worker/verb/device_flags.h"
#include "worker/verb/worker_verb.h"

namespace muster {
namespace {

CommandLineOptions Describe() {
  CommandLineOptions options = TaskCommandLine("worker devices");
  options.summary =
      "Prints the devices that a model can compute on.\n\n"
      "  worker devices\n";
  options.groups = {GpuFlagGroup()};
  options.path_flags = {"gpu_library_path"};
  return options;
}

int Run(const CommandLine& /*command_line*/) {
  const auto gpu = GpuFlags();
  if (!gpu.ok()) {
    std::fprintf(stderr, "worker devices: %s\n",
                 std::string(gpu.status().message()).c_str());
    return ExitCodeOf(gpu.status());
  }
  std::fputs(DescribeDevices(*gpu).c_str(), stdout);
  return kExitDone;
}

}  // namespace

WorkerVerb DevicesVerb() { return {"devices", &Describe, &Run}; }

}  // namespace muster
