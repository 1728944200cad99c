#ifndef PS_SERVER_SERVICE_SHARD_SERVER_H_
#define PS_SERVER_SERVICE_SHARD_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/thread_team.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/served_calls.h"
#include "ps_server/block/parameter_memory.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/fair_queue.h"
#include "ps_server/service/shard_look.h"
#include "ps_server/service/strand.h"
#include "ps_server/shard/parameter_shard.h"
#include "ps_server/shard/part_recorder.h"
#include "ps_server/shard/push_budget.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// A ParameterShard for many callers: behind the gRPC service and the shared
// memory of a ps process, and called directly by a worker with --standalone.
// One request runs at a time, on the thread of whoever asks (Strand); others
// may share its work on a large part. Where there may be named namespaces,
// their requests take turns by bytes (FairQueue); otherwise they run in the
// order in which they came.
//
// Thread-safe; a callback may run on any caller's thread. A request whose
// deadline has passed before its turn is not carried out. After Close every
// call answers Unavailable.
class ShardServer : public DataLink {
 public:
  struct Options {
    // apply_team is overwritten.
    ShardOptions shard;
    // Outlives the server.
    const Clock* clock = nullptr;
    // The most bytes of pushed and loaded parts that wait for the shard.
    int64_t push_budget_bytes = int64_t{256} << 20;
    // Threads that share the work on a large part, the caller's one of them.
    int apply_threads = 1;
    // Called when a request has changed the phase of a namespace's model, one
    // call at a time; must not block.
    std::function<void(const std::string& space, const ShardState&,
                       const std::string& optimizer)>
        on_phase_change;
    // A line for the operator, in the same way: a start of a task was replaced
    // by another one; the workers of an update have other learning rates.
    Reporter reporter;
  };

  explicit ShardServer(Options options);
  ~ShardServer() override;

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    calls_.CallBytes(method, std::move(request), deadline, std::move(done));
  }
  // All calls of ParameterService without tensors, for this server's life.
  ServedCalls& calls() { return calls_; }

  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override;
  void PullRowsInto(Frame<PullRowsRequest> request, ValueMemory memory,
                    absl::Time deadline,
                    ReplyCallback<Frame<PullRowsReply>> done) override;
  void PullInto(const PullRequest& request, ValueMemory memory,
                absl::Time deadline,
                ReplyCallback<Frame<PullReply>> done) override;
  void PushInto(Frame<PushPart> request, PushContext context,
                absl::Time deadline,
                ReplyCallback<Frame<PushReply>> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;
  // Of the default namespace. Waits for its turn.
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override;
  absl::Status KeepOnDevice(const Sender& sender, const Fence& fence,
                            DeviceParameters* holder) override;
  absl::StatusOr<PushReply> UpdateOnDevice(const PushPart& request) override;
  absl::StatusOr<std::shared_ptr<const ParameterMemory>> ParametersInPlace(
      int64_t model_epoch);

  // Carries out what was asked, then refuses everything. Repeatable.
  void Close();

  // When a task that trains called last; InfinitePast if none has.
  absl::Time last_request() const {
    const int64_t nanos = last_request_ns_;
    return nanos == 0 ? absl::InfinitePast() : absl::FromUnixNanos(nanos);
  }

  // While the result lives, its thread calls `hook` between two requests that
  // it carries out: others may ask without end, and a call returns only when
  // nothing is left.
  Strand::YieldHook YieldTo(const std::function<void()>* hook) const {
    return Strand::YieldHook(&strand_, hook);
  }

  // Gives what the models are at one moment to `done`, in its turn. False once
  // closed.
  bool Look(std::function<void(ShardLook)> done);
  // Whether a model is being read to be saved. Waits for its turn.
  bool IsBeingSaved();

  // The counts of the models that there are, together. REQUIRES: Close was
  // called.
  ShardCounters counters() const;
  // Parts that found no room.
  int64_t refused_for_memory() const { return budget_.refused(); }

 private:
  void ServeCalls();
  // Has `task` run in its turn, which costs `bytes`. False once closed.
  bool Post(absl::string_view space, int64_t bytes, Strand::Task task);
  // When a request came; not looked at while nobody records.
  absl::Time AskedNow() const {
    return recorders_.load(std::memory_order_relaxed) == 0
               ? absl::InfinitePast()
               : options_.clock->Now();
  }
  // Records a turn, for as long as the result lives.
  template <typename Request>
  RecordedTurn RecordTurn(const Request& request, absl::Time asked);
  absl::StatusOr<ProfileReply> Profile(ParameterShard& shard,
                                       const ProfileRequest& request);
  // Runs `method`, of ParameterShard or given one first, in its turn and gives
  // its result to `done`.
  template <typename Reply, typename Request, typename Method>
  void Submit(Request request, int64_t bytes, absl::Time deadline,
              ReplyCallback<Reply> done, Method method);
  // The same for a part with tensor bytes, if there is room for it.
  template <typename Reply, typename Header, typename Method>
  void SubmitPart(Frame<Header> request, absl::Time deadline,
                  ReplyCallback<Reply> done, Method method);
  // The turn of a request; those without a sender are of viewers.
  template <typename Request>
  void NoteRequest(const Request& request, absl::Time now);
  // Runs `task` in its turn, and waits for that. Errors: Unavailable.
  absl::Status RunAndWait(absl::FunctionRef<void()> task);
  absl::StatusOr<HelloReply> Greet(ParameterShard& shard,
                                   const HelloRequest& request) const;
  // Tells of models whose phase has changed; only calls without tensors do
  // that.
  void TellPhases();
  // Warns once of each model whose workers have other learning rates.
  void TellRates();
  ShardOptions ShardOptionsWithTeam() const;

  const Options options_;
  // Constant after construction.
  ServedCalls calls_;
  // Own synchronisation.
  PushBudget budget_;
  // 0: none.
  std::atomic<int64_t> last_request_ns_ = 0;
  // Those that have not ended.
  std::atomic<int> recorders_ = 0;
  // Null for one thread.
  const std::unique_ptr<ThreadTeam> apply_team_;
  // Used by the strand's tasks only, until it is closed.
  ParameterShard shard_;
  std::map<std::string, ShardPhase> told_phases_;
  std::set<std::string> told_rates_;
  // Null where there is one namespace.
  const std::unique_ptr<FairQueue> queue_;
  // Last: its tasks use all of the above.
  Strand strand_;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SHARD_SERVER_H_
