#ifndef PS_SERVER_SERVICE_SHARD_SERVER_H_
#define PS_SERVER_SERVICE_SHARD_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/thread_team.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "ps_server/block/parameter_memory.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/strand.h"
#include "ps_server/shard/parameter_shard.h"
#include "ps_server/shard/push_budget.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// A ParameterShard for many callers: behind the gRPC service and the shared
// memory of a ps process, and called directly by a worker with --standalone.
// One request runs at a time, on the thread of whoever asks (Strand); others
// may share its work on a large part.
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
    // Called when a Define or Seal has changed the phase, one call at a time;
    // must not block.
    std::function<void(const ShardState&, const std::string& optimizer)>
        on_phase_change;
    // A line for the operator, in the same way: a start of a task was replaced
    // by another one.
    Reporter reporter;
  };

  explicit ShardServer(Options options);
  ~ShardServer() override;

  void Hello(const HelloRequest& request, absl::Time deadline,
             ReplyCallback<HelloReply> done) override;
  void Define(const DefineRequest& request, absl::Time deadline,
              ReplyCallback<DefineReply> done) override;
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Seal(const SealRequest& request, absl::Time deadline,
            ReplyCallback<SealReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void PullInto(const PullRequest& request, ValueMemory memory,
                absl::Time deadline,
                ReplyCallback<Frame<PullReply>> done) override;
  void PushInto(Frame<PushPart> request, PushContext context,
                absl::Time deadline,
                ReplyCallback<Frame<PushReply>> done) override;
  void BeginSnapshot(const BeginSnapshotRequest& request, absl::Time deadline,
                     ReplyCallback<BeginSnapshotReply> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;
  void EndSnapshot(const EndSnapshotRequest& request, absl::Time deadline,
                   ReplyCallback<EndSnapshotReply> done) override;
  // Waits for its turn.
  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override;
  absl::Status KeepOnDevice(const Sender& sender, const Fence& fence,
                            DeviceParameters* holder) override;
  absl::StatusOr<PushReply> UpdateOnDevice(const PushPart& request) override;
  absl::StatusOr<std::shared_ptr<const ParameterMemory>> ParametersInPlace(
      int64_t model_epoch);

  // The answer to ParameterService.State.
  void State(const StateRequest& request, absl::Time deadline,
             ReplyCallback<ShardState> done);

  // Carries out what was asked, then refuses everything. Repeatable.
  void Close();

  // While the result lives, its thread calls `hook` between two requests that
  // it carries out: others may ask without end, and a call returns only when
  // nothing is left.
  Strand::YieldHook YieldTo(const std::function<void()>* hook) const {
    return Strand::YieldHook(&strand_, hook);
  }

  // The counts of its life. REQUIRES: Close was called.
  ShardCounters counters() const { return shard_.counters(); }
  // Parts that found no room.
  int64_t refused_for_memory() const { return budget_.refused(); }

 private:
  // Runs `method`, of ParameterShard or given one first, in its turn and gives
  // its result to `done`.
  template <typename Reply, typename Request, typename Method>
  void Submit(Request request, absl::Time deadline, ReplyCallback<Reply> done,
              Method method);
  // The same for a part with tensor bytes, if there is room for it.
  template <typename Reply, typename Header, typename Method>
  void SubmitPart(Frame<Header> request, absl::Time deadline,
                  ReplyCallback<Reply> done, Method method);
  // Runs `task` in its turn, and waits for that. Errors: Unavailable.
  absl::Status RunAndWait(absl::FunctionRef<void()> task);
  absl::StatusOr<HelloReply> Greet(ParameterShard& shard,
                                   const HelloRequest& request) const;
  void TellPhase();
  ShardOptions ShardOptionsWithTeam() const;

  const Options options_;
  // Own synchronisation.
  PushBudget budget_;
  // Null for one thread.
  const std::unique_ptr<ThreadTeam> apply_team_;
  // Used by the strand's tasks only, until it is closed.
  ParameterShard shard_;
  ShardPhase told_phase_ = EMPTY;
  // Last: its tasks use all of the above.
  Strand strand_;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SHARD_SERVER_H_
