// A program trains a model of its own on running ps tasks; `options` name them
// and the update rule:
//
//   ASSIGN_OR_RETURN(auto model, Client::Connect(options, {{"w", {3, 2}}}));
//   RETURN_IF_ERROR(model->Initialize({w}));  // worker 0; others wait for that
//   RETURN_IF_ERROR(model->Pull({absl::MakeSpan(w)}));
//   while (ComputeGradient(w, &diff)) {
//     RETURN_IF_ERROR(model->PushPull({diff}, {absl::MakeSpan(w)}).status());
//   }
//
// Sparse tables have rows by 64-bit id, which are made as they are first pushed
// to. With options.tables = {{"user", 8}}, in each step:
//
//   RETURN_IF_ERROR(model->PullRows(0, ids, absl::MakeSpan(rows)));
//   ... compute from w and rows ...
//   RETURN_IF_ERROR(model->PushPull({diff}, {absl::MakeSpan(w)},
//                                   {{0, ids, row_diffs}}).status());
#ifndef WORKER_CLIENT_CLIENT_H_
#define WORKER_CLIENT_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/wait_reporter.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/parameter_link.h"
#include "common/tls/task_keys.h"
#include "proto/parameter_service.pb.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/client/parameter_client.h"
#include "worker/client/table_rows.h"

namespace muster {

// A model of the caller's own on running ps tasks: the caller computes the
// gradients, however it likes; placement, update rule, exactly-once pushes and
// repeats after lost messages are ours. No TrainingSpec, no chief, no
// checkpoints: one worker initializes, each pushes when it is ready
// (asynchronous replication).
//
// client_example.cc is a whole program. For use by one thread.
//
// Errors of all calls: Unavailable if a ps task is away for too long, naming it
// and the cause; Aborted ("fenced: ...") once a ps task was started anew or the
// model was initialized again: its values are gone, and only Initialize, or
// waiting for who does it, goes on.
class Client {
 public:
  // float32, row-major.
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
  };

  // A sparse table.
  struct Table {
    std::string name;
    // Values of a row.
    int64_t dim = 0;
    // Of its rows; without a name it is Options.optimizer.
    OptimizerSpec optimizer = {};
    // The first values of a row: UNIFORM in [-scale, scale), or ZEROS.
    InitialRows initial = UNIFORM;
    float scale = 0.05f;
    uint64_t seed = 0;
    // Rows at most; who was updated longest ago goes first. 0: no limit.
    int64_t max_rows = 0;
  };

  struct Options {
    // "host:port" of each ps task, in the ClusterSpec's order.
    std::vector<std::string> ps_addresses;
    // This process among those that push; one process an index.
    int worker_index = 0;
    // The worker's own ClusterSpec address, if the ps tasks' spec lists
    // workers.
    std::string worker_address;
    // The same in every worker, as are the tensors, tables and the placement.
    OptimizerSpec optimizer;
    std::vector<Table> tables;
    PlacementSpec placement;
    // Shared memory with ps tasks of this machine, TCP with others, gRPC where
    // there is neither; or one alone.
    LinkChoice link = LinkChoice::kAuto;
    // Gets a line whenever the way of the tensors changes, and every 10 s of a
    // wait.
    Reporter reporter;
    // Folder with ca.pem, worker-INDEX.pem and worker-INDEX.key, of `muster
    // certs`: mutual TLS. "": none.
    std::string certs_dir;
    // Addresses beyond this machine, without encryption.
    bool allow_insecure_network = false;
    // For ps tasks to come, for somebody to initialize, and for the answer to
    // a push.
    absl::Duration max_wait = absl::Minutes(5);
    // Not owned; outlives the model.
    const Clock* clock = SystemClock();
  };

  // Waits until every ps task answers. Errors: also InvalidArgument for the
  // options and tensors, Unauthenticated for an address that is not this
  // machine's, and for keys that a ps would refuse, FailedPrecondition for a ps
  // of another version.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const Options& options, absl::Span<const Tensor> tensors);
  // The same over links of the caller's, one a ps address.
  static absl::StatusOr<std::unique_ptr<Client>> Create(
      const Options& options, absl::Span<const Tensor> tensors,
      std::vector<std::unique_ptr<ParameterLink>> links);

  // Sets every parameter, one span a tensor, and its slots to their start
  // values, and empties every table, whatever the ps tasks held before. For one
  // worker.
  absl::Status Initialize(absl::Span<const absl::Span<const float>> values);
  // Returns when another worker has initialized this model: the same tensors
  // and optimizer. Asks ten times a second. Errors: also DeadlineExceeded
  // after max_wait, naming the ps task that has no model, or another.
  absl::Status WaitForOthersToInitialize();

  // Reads every parameter into one span a tensor. After an error their contents
  // are a mixture.
  absl::Status Pull(absl::Span<const absl::Span<float>> into);
  // Applies the update rule to every parameter, with one gradient a tensor;
  // returns when every ps task has. Computed from what was last pulled; the
  // result's staleness is counted from there. `rows` of tables, at most one
  // element a table, are part of the same step; gradients of equal ids are
  // added up in their order. Without an answer the same push
  // goes on until max_wait, and each ps task applies it once. Errors: also
  // FailedPrecondition if nothing was pulled since the model was initialized;
  // after Unavailable some ps tasks may have applied it, and others not.
  absl::StatusOr<PushResult> Push(
      absl::Span<const absl::Span<const float>> gradients,
      absl::Span<const RowGradients> rows = {});
  // Push and Pull in one round trip: `into` gets the parameters as they are
  // after this update. Errors: as both.
  absl::StatusOr<PushResult> PushPull(
      absl::Span<const absl::Span<const float>> gradients,
      absl::Span<const absl::Span<float>> into,
      absl::Span<const RowGradients> rows = {});

  // Reads rows of a table, by its index in Options.tables; a row that nobody
  // has pushed to has its first values. Ids may repeat.
  //   ids [n], into [n, dim].
  // Errors: also InvalidArgument for a table or sizes that cannot be.
  absl::Status PullRows(int table, absl::Span<const int64_t> ids,
                        absl::Span<float> into);
  // A step of these rows alone: no parameter has a gradient. As Push.
  //   ids [n], gradients [n, dim].
  absl::StatusOr<PushResult> PushRows(int table, absl::Span<const int64_t> ids,
                                      absl::Span<const float> gradients);

  // The latest push's; 0 before the first.
  int64_t step() const { return step_; }
  // The client beneath, for pulls and pushes that return before their end. Its
  // steps continue step().
  ParameterClient& client() { return *client_; }

 private:
  Client(Options options, Sender sender,
         std::unique_ptr<ParameterClient> client);

  // The next step's push, with the answer's values `into`.
  absl::StatusOr<PushResult> PushStep(absl::Span<const TensorView> gradients,
                                      absl::Span<const MutableTensorView> into,
                                      absl::Span<const RowGradients> rows);
  absl::StatusOr<PushResult> PushSummed(
      absl::Span<const TensorView> gradients,
      absl::Span<const MutableTensorView> into,
      absl::Span<const RowGradients> rows);
  std::vector<TableDef> MakeTables() const;
  // InvalidArgument unless it is a table, and has so many values for its ids.
  absl::Status CheckRows(int table, size_t ids, size_t values) const;
  absl::Status SetTensors(absl::Span<const Tensor> tensors);
  HelloRequest MakeHello(int ps_task) const;
  // One Hello, confirmed if an earlier start of this worker is known there.
  absl::StatusOr<HelloReply> Hello(int ps_task);
  // Asks every ps task until each answers; replies by ps task.
  absl::StatusOr<std::vector<HelloReply>> HelloAll(absl::Time deadline);
  // "" if it holds this model at `epoch`, else what it holds.
  std::string Unready(const ShardState& state, int64_t epoch) const;
  // A tenth of a second.
  // Before another look at what is waited for.
  void Pause(const std::string& what);
  void StopWaiting();
  // InvalidArgument unless there is one span a tensor, of its size.
  template <typename T>
  absl::Status CheckSpans(absl::Span<const absl::Span<T>> spans) const;

  // Null without certs_dir. First: the links use it.
  std::unique_ptr<TaskKeys> keys_;
  const Options options_;
  const Sender sender_;
  const std::unique_ptr<ParameterClient> client_;
  std::vector<TensorDef> tensors_;
  std::vector<int64_t> sizes_;
  // By ps task: the versions of the rows that were pulled since the last push;
  // empty: none were.
  std::vector<int64_t> row_versions_;
  uint64_t fingerprint_ = 0;
  int64_t step_ = 0;
  absl::Mutex mu_;  // for Pause
  WaitReporter waiting_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_CLIENT_H_
