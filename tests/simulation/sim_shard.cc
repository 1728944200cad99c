#include "tests/simulation/sim_shard.h"

#include <type_traits>

#include "common/rpc/call_table.h"
#include "tests/testing/copied_frame.h"

namespace muster {

SimShard::SimShard(const Options& options)
    : options_(options),
      shard_(options.shard),
      bugs_(options.bug, options.shard.ps_index, options.shard.incarnation,
            &shard_),
      turns_(options.turns) {}

template <typename M, typename Answer>
void SimShard::ServeRow(ServedCalls* calls, const M& row, Answer answer) {
  using Request = typename M::Request;
  calls->Handle(
      row, [this, answer](const Request& request, absl::Time deadline,
                          const ReplyCallback<typename M::Reply>& done) {
        turns_.Ask(
            deadline, [request, done, answer] { done(answer(request)); },
            [done](const absl::Status& why) { done(why); });
      });
}

void SimShard::Serve(ServedCalls* calls) {
  ParameterShard::VisitCalls([&](const auto& row, auto method) {
    using Row = std::decay_t<decltype(row)>;
    this->ServeRow(calls, row,
                   [this, method](const typename Row::Request& request) {
                     return (shard_.*method)(request);
                   });
  });
  // In place of the shard's.
  const auto serve_own = [&](const auto& row) {
    using Row = std::decay_t<decltype(row)>;
    this->ServeRow(calls, row, [this](const typename Row::Request& request) {
      return this->Handle(request);
    });
  };
  serve_own(kHelloCall);
  serve_own(kDefineCall);
  serve_own(kSealCall);
  serve_own(kBeginSnapshotCall);
  serve_own(kEndSnapshotCall);
}

std::vector<std::string> SimShard::ReadySpaces() const {
  std::vector<std::string> spaces;
  shard_.ForEachModel([&](const std::string& space, const ShardModel& model) {
    if (model.phase() == READY) spaces.push_back(space);
  });
  return spaces;
}

ShardState SimShard::State(const std::string& space) const {
  ShardState state;
  shard_.ForEachModel([&](const std::string& name, const ShardModel& model) {
    if (name == space) state = model.State();
  });
  return state;
}

// ---- Requests -------------------------------------------------------------

absl::StatusOr<HelloReply> SimShard::Handle(HelloRequest request) {
  absl::StatusOr<HelloReply> reply = shard_.Hello(request);
  if (!reply.ok()) return reply;
  *reply->mutable_state() = bugs_.Shown(reply->state());
  reply->set_ps_incarnation(bugs_.ShownIncarnation());
  return reply;
}

absl::StatusOr<DefineReply> SimShard::Handle(DefineRequest request) {
  if (bugs_.KeepOldModel(request.model_epoch())) return last_define_;
  if (request.ps_incarnation() == bugs_.ShownIncarnation()) {
    request.set_ps_incarnation(options_.shard.incarnation);
  }
  bugs_.See(request);
  absl::StatusOr<DefineReply> reply = shard_.Define(request);
  if (reply.ok()) last_define_ = *reply;
  return reply;
}

absl::StatusOr<LoadReply> SimShard::Handle(Frame<LoadPart> request) {
  if (bugs_.keeps_old_model()) return LoadReply();
  bugs_.Forge(request.header.mutable_fence());
  bugs_.Forge(&request);
  return shard_.Load(request);
}

absl::StatusOr<SealReply> SimShard::Handle(SealRequest request) {
  bugs_.Forge(request.mutable_fence());
  absl::StatusOr<SealReply> reply = shard_.Seal(request);
  if (reply.ok()) *reply->mutable_state() = bugs_.Shown(reply->state());
  return reply;
}

absl::StatusOr<Frame<PullReply>> SimShard::Handle(PullRequest request) {
  bugs_.Forge(request.mutable_fence());
  bugs_.Forge(request.mutable_token());
  return Copied(shard_.Pull(request));
}

absl::StatusOr<Frame<PullRowsReply>> SimShard::Handle(
    Frame<PullRowsRequest> request) {
  bugs_.Forge(request.header.mutable_fence());
  bugs_.Forge(request.header.mutable_token());
  return Copied(shard_.PullRows(request));
}

absl::StatusOr<Frame<PushReply>> SimShard::Handle(Frame<PushPart> request) {
  bugs_.Forge(request.header.mutable_fence());
  bugs_.Forge(&request);
  if (bugs_.TakesForDuplicate(request.header)) {
    Frame<PushReply> duplicate;
    duplicate.header.set_duplicate(true);
    return duplicate;
  }
  absl::StatusOr<Frame<PushReply>> reply = Copied(shard_.Push(request));
  OracleOf(request.header.sender())->AfterPush(options_.ps);
  return reply;
}

absl::StatusOr<BeginSnapshotReply> SimShard::Handle(
    BeginSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  absl::StatusOr<BeginSnapshotReply> reply = shard_.BeginSnapshot(request);
  if (!reply.ok()) return reply;
  OracleOf(request.sender())->AfterCut(options_.ps, *reply);
  if (options_.bug == Bug::kMarksNotSaved) reply->clear_marks();
  return reply;
}

absl::StatusOr<Frame<SnapshotPart>> SimShard::Handle(
    ReadSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  if (options_.bug == Bug::kTornCut && request.slot().empty()) {
    return bugs_.ReadValuesOfNow(request);
  }
  return shard_.ReadSnapshot(request);
}

absl::StatusOr<EndSnapshotReply> SimShard::Handle(EndSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  return shard_.EndSnapshot(request);
}

}  // namespace muster
