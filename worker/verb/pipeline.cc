#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "common/base/printing.h"
#include "common/base/status_macros.h"
#include "common/process/exit_code.h"
#include "common/rpc/server/task_flags.h"
#include "worker/task/pipeline_dry_run.h"
#include "worker/verb/device_flags.h"
#include "worker/verb/model_flags.h"
#include "worker/verb/worker_verb.h"

ABSL_FLAG(int, num_workers, 1,
          "Workers of the job, which share input.global_batch_size.");

namespace muster {
namespace {

CommandLineOptions Describe() {
  CommandLineOptions options = TaskCommandLine("worker pipeline");
  options.summary =
      "Measures the stages of the model's pipeline for a few steps of random "
      "rows,\nand prints what they cost.\n\n"
      "  worker pipeline --training=FILE "
      "--set=model.pipeline.micro_batches=8\n";
  options.groups = {{"Training", {"training", "set", "num_workers"}},
                    DevicesFlagGroup(),
                    GpuFlagGroup(),
                    LogFlagGroup()};
  DescribeModelFlags(&options);
  return options;
}

absl::StatusOr<std::string> Measure(const CommandLine& command_line) {
  PipelineDryRun run;
  ASSIGN_OR_RETURN(run.training, TrainingFlags(command_line));
  ASSIGN_OR_RETURN(run.device_choice, DeviceFlags());
  ASSIGN_OR_RETURN(const ComputeThreads threads,
                   SetUpCores(ResolvedCluster(), run.training.input()));
  run.compute_threads = threads.count;
  run.num_workers = absl::GetFlag(FLAGS_num_workers);
  if (run.num_workers < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--num_workers: wanted 1 or more, found ", run.num_workers));
  }
  run.reporter = MakePrinting(PrintingOptions()).reporter;
  return RunPipelineDryRun(run);
}

int Run(const CommandLine& command_line) {
  const absl::Status logging = SetUpTaskLogging(/*task_name=*/"");
  if (!logging.ok()) return FailVerb(logging);
  const auto table = Measure(command_line);
  if (!table.ok()) return FailVerb(table.status());
  std::fputs(table->c_str(), stdout);
  return kExitDone;
}

}  // namespace

WorkerVerb PipelineVerb() { return {"pipeline", &Describe, &Run}; }

}  // namespace muster
