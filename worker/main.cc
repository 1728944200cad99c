// worker: trains a model on the ps tasks of a cluster, or alone, and uses what
// was trained. See README.md.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/config/command_line.h"
#include "common/process/end_process.h"
#include "common/process/exhaustion.h"
#include "common/process/exit_code.h"
#include "common/process/process_setup.h"
#include "grpc/support/log.h"
#include "worker/verb/worker_verb.h"

namespace muster {
namespace {

std::vector<WorkerVerb> Verbs() {
  return {TrainVerb(), EvaluateVerb(), PredictVerb(), DevicesVerb(),
          PipelineVerb()};
}

int RefuseVerb(const std::string& name) {
  std::vector<std::string> known;
  for (const WorkerVerb& verb : Verbs()) known.push_back(verb.name);
  const std::string nearest = NearestName(name, known);
  std::fputs(absl::StrCat("worker: no verb '", EscapeForLog(name), "'",
                          nearest.empty()
                              ? "; --help lists them"
                              : absl::StrCat("; did you mean ", nearest, "?"),
                          "\n")
                 .c_str(),
             stderr);
  return kExitBadConfig;
}

int RunVerb(const WorkerVerb& verb, const std::vector<std::string>& args) {
  const CommandLine command_line = ParseCommandLine(args, verb.describe());
  std::fputs(command_line.out.c_str(), stdout);
  std::fputs(command_line.error.c_str(), stderr);
  if (command_line.exit_code.has_value()) return *command_line.exit_code;
  return verb.run(command_line);
}

int Main(const std::vector<std::string>& args) {
  SetUpProcess();
  // NCCL, which joins the cards of this process, would listen on the network.
  setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
  // The links and servers say in better words what gRPC prints by itself.
  gpr_set_log_function([](gpr_log_func_args*) {});
  if (args.empty() || absl::StartsWith(args[0], "-")) {
    return RunVerb(TrainVerb(), args);
  }
  for (const WorkerVerb& verb : Verbs()) {
    if (args[0] == verb.name)
      return RunVerb(verb, {args.begin() + 1, args.end()});
  }
  return RefuseVerb(args[0]);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::ExplainExhaustion("worker");
  muster::EndProcess(
      muster::Main(std::vector<std::string>(argv + 1, argv + argc)));
}
