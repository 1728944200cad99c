#ifndef WORKER_PYTHON_JOB_READER_H_
#define WORKER_PYTHON_JOB_READER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/wait_reporter.h"
#include "common/rpc/parameter_link.h"
#include "common/tls/task_keys.h"
#include "proto/tensor.pb.h"
#include "worker/client/namespace_reader.h"
#include "worker/client/shard_group.h"

namespace muster {

// The parameters of a job in training, read from its ps tasks by a process that
// takes no part in it: no task of the job is displaced, nothing waits for the
// reader. Each block of a tensor is that of some instant.
//
//   ASSIGN_OR_RETURN(auto reader, JobReader::Connect("ps_hosts: 'h:2222'"));
//   while (true) {
//     ASSIGN_OR_RETURN(bool is_there, reader->Await(absl::Seconds(1)));
//     if (is_there) break;
//   }
//   ... values for reader->tensors() ...
//   while (true) { ... reader->Read(absl::Seconds(1), values) ... }
//
// One thread.
class JobReader {
 public:
  struct Options {
    // Sender (incarnation 0), names of the ps tasks, clock.
    ShardGroup::Options shards;
    std::string space;
    absl::Duration max_wait = absl::Hours(2);
    // Gets lines about what is waited for.
    Reporter reporter;
  };

  // Reads where the job is from the text of a ProgramSpec; connects to nobody
  // yet. Errors: InvalidArgument, also for what is no matter of a reader's;
  // those of ResolveCluster, KeysOfTask and CheckConnectAddress.
  static absl::StatusOr<std::unique_ptr<JobReader>> Connect(
      absl::string_view text);

  // `links` by ps task; `keys`, of the links, may be null.
  JobReader(Options options, std::vector<std::unique_ptr<ParameterLink>> links,
            std::unique_ptr<TaskKeys> keys = nullptr);

  // Waits for about as long as `timeout` until all ps tasks have the whole
  // model; returns whether they do. Errors: Unavailable, naming what was waited
  // for, after max_wait; those of NamespaceReader::Open that waiting does not
  // change.
  absl::StatusOr<bool> Await(absl::Duration timeout);
  // REQUIRES: Await has returned true.
  const std::vector<TensorDef>& tensors() const { return tensors_; }
  // The names of its tables, whose rows it does not read. REQUIRES: the same.
  const std::vector<std::string>& tables() const { return tables_; }

  // Reads all tensors, each into its place; returns whether that is done after
  // about `timeout`: if not, another call goes on. All are of one epoch of the
  // model: after a restore it begins anew. Errors: those of Await;
  // InvalidArgument if the model has other tensors by now. REQUIRES: as
  // tensors().
  absl::StatusOr<bool> Read(absl::Duration timeout,
                            absl::Span<const absl::Span<float>> values);

 private:
  absl::Status Open();
  absl::StatusOr<bool> OpenUntil(absl::Time until);
  // Between two tries; false if it is late.
  bool Pause(absl::Time until);
  void StopWaiting();
  // OK if waiting may help, and may go on.
  absl::Status Wait(const absl::Status& status);

  const Options options_;
  // Outlives the links.
  const std::unique_ptr<TaskKeys> keys_;
  ShardGroup shards_;
  std::optional<NamespaceReader> reader_;
  std::vector<TensorDef> tensors_;
  std::vector<std::string> tables_;
  // Those before it are read.
  size_t next_ = 0;
  WaitReporter waiting_;
};

}  // namespace muster

#endif  // WORKER_PYTHON_JOB_READER_H_
