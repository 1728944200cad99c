// What a program says of itself, read and checked.
#ifndef WORKER_PYTHON_PROGRAM_OPTIONS_H_
#define WORKER_PYTHON_PROGRAM_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/cluster/cluster_resolver.h"
#include "common/tls/task_keys.h"
#include "proto/program.pb.h"
#include "worker/program/program_task.h"

namespace muster {

// A program's spec, whose cluster and own task are found.
struct ResolvedProgram {
  ProgramSpec spec;
  ResolvedCluster cluster;
};

// Reads the text of a ProgramSpec, and finds cluster and task in it, TF_CONFIG
// and what a launcher says; a worker's number also in its certificate. Starts
// no thread. Errors: those of ParseTextProto and ResolveCluster;
// InvalidArgument for a cluster without ps tasks.
absl::StatusOr<ResolvedProgram> ResolveProgram(absl::string_view text);

// The options of a program's task, and what they refer to.
struct KeyedProgram {
  ProgramOptions options;
  // Null without certs_dir. Outlives the task of the options.
  std::unique_ptr<TaskKeys> keys;
};

// Checks all of the spec. The registries of update rules, placement strategies
// and codecs must be linked in. Errors: InvalidArgument and NotFound naming the
// field, what was wanted and what was found; Unauthenticated for a network that
// was not allowed; those of KeysOfTask.
absl::StatusOr<KeyedProgram> MakeProgramOptions(ResolvedProgram program);

// Checks a sparse table's name and floats of a row. Errors: InvalidArgument.
absl::Status CheckTable(const std::string& name, int64_t dim);

// Elements of each tensor. REQUIRES: MakeProgramOptions took them.
std::vector<int64_t> ElementsOf(absl::Span<const ProgramTensor> tensors);

}  // namespace muster

#endif  // WORKER_PYTHON_PROGRAM_OPTIONS_H_
