#ifndef WORKER_VERB_WORKER_VERB_H_
#define WORKER_VERB_WORKER_VERB_H_

#include "absl/status/status.h"
#include "common/config/command_line.h"

namespace muster {

// One thing that the program `worker` does. A verb is a source file and a line
// in worker/main.cc; its flags are those of its groups.
struct WorkerVerb {
  // The first argument of the command line; "" trains.
  const char* name;
  CommandLineOptions (*describe)();
  // REQUIRES: the flags are set. Returns the exit code of the process.
  int (*run)(const CommandLine& command_line);
};

// Logs why a verb ends, and returns its exit code: that of LogFailure, or
// kExitRetryable where the disk is full, or kExitBadCheckpoint where a file of
// the train_dir is damaged.
int FailVerb(const absl::Status& status);

// Training is worker/train.cc, which links ps tasks.
WorkerVerb TrainVerb();

WorkerVerb EvaluateVerb();
WorkerVerb PredictVerb();
WorkerVerb DevicesVerb();
WorkerVerb PipelineVerb();

}  // namespace muster

#endif  // WORKER_VERB_WORKER_VERB_H_
