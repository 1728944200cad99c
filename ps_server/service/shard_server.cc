#include "ps_server/service/shard_server.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "ps_server/caller/task_name.h"

namespace muster {
namespace {

absl::Status ShuttingDown(int32_t ps_index) {
  return absl::UnavailableError(
      absl::StrCat("/job:ps/task:", ps_index, " is shutting down"));
}

absl::Status TooLate(int32_t ps_index) {
  return absl::DeadlineExceededError(absl::StrCat(
      "the deadline passed before /job:ps/task:", ps_index, " got to it"));
}

}  // namespace

ShardServer::ShardServer(Options options)
    : options_(std::move(options)),
      budget_(options_.push_budget_bytes),
      apply_team_(options_.apply_threads > 1
                      ? std::make_unique<ThreadTeam>(options_.apply_threads)
                      : nullptr),
      shard_(ShardOptionsWithTeam()) {}

ShardOptions ShardServer::ShardOptionsWithTeam() const {
  ShardOptions shard = options_.shard;
  shard.apply_team = apply_team_.get();
  return shard;
}

ShardServer::~ShardServer() { Close(); }

void ShardServer::Close() { strand_.Close(); }

template <typename Reply, typename Request, typename Method>
void ShardServer::Submit(Request request, absl::Time deadline,
                         ReplyCallback<Reply> done, Method method) {
  const bool posted = strand_.Post(
      [this, request = std::move(request), deadline, done, method] {
        if (options_.clock->Now() >= deadline) {
          return done(TooLate(options_.shard.ps_index));
        }
        absl::StatusOr<Reply> reply = std::invoke(method, shard_, request);
        TellPhase();
        done(std::move(reply));
      });
  if (!posted) done(ShuttingDown(options_.shard.ps_index));
}

template <typename Reply, typename Header, typename Method>
void ShardServer::SubmitPart(Frame<Header> request, absl::Time deadline,
                             ReplyCallback<Reply> done, Method method) {
  const auto bytes = static_cast<int64_t>(request.data.size());
  const absl::Status admitted = budget_.Admit(bytes);
  if (!admitted.ok()) return done(admitted);
  const bool posted = strand_.Post(
      [this, request = std::move(request), deadline, done, method, bytes] {
        const absl::Time start = options_.clock->Now();
        if (start >= deadline) {
          budget_.Release(bytes, absl::ZeroDuration());
          return done(TooLate(options_.shard.ps_index));
        }
        absl::StatusOr<Reply> reply = std::invoke(method, shard_, request);
        budget_.Release(bytes, options_.clock->Now() - start);
        TellPhase();
        done(std::move(reply));
      });
  if (posted) return;
  budget_.Release(bytes, absl::ZeroDuration());
  done(ShuttingDown(options_.shard.ps_index));
}

void ShardServer::TellPhase() {
  if (!options_.on_phase_change || shard_.phase() == told_phase_) return;
  told_phase_ = shard_.phase();
  options_.on_phase_change(shard_.State(), shard_.optimizer_name());
}

void ShardServer::Hello(const HelloRequest& request, absl::Time deadline,
                        ReplyCallback<HelloReply> done) {
  Submit(request, deadline, std::move(done),
         [this](ParameterShard& shard, const HelloRequest& hello) {
           return Greet(shard, hello);
         });
}

absl::StatusOr<HelloReply> ShardServer::Greet(
    ParameterShard& shard, const HelloRequest& request) const {
  const uint64_t before = shard.CurrentIncarnation(request.sender());
  absl::StatusOr<HelloReply> reply = shard.Hello(request);
  const uint64_t after = shard.CurrentIncarnation(request.sender());
  if (before != 0 && after != before) {
    options_.reporter.Info(absl::StrCat(
        TaskName(request.sender()), " was started anew: incarnation ",
        absl::Hex(after), " replaces ", absl::Hex(before)));
  }
  return reply;
}

void ShardServer::Define(const DefineRequest& request, absl::Time deadline,
                         ReplyCallback<DefineReply> done) {
  Submit(request, deadline, std::move(done), &ParameterShard::Define);
}

void ShardServer::Load(Frame<LoadPart> request, absl::Time deadline,
                       ReplyCallback<LoadReply> done) {
  SubmitPart(std::move(request), deadline, std::move(done),
             &ParameterShard::Load);
}

void ShardServer::Seal(const SealRequest& request, absl::Time deadline,
                       ReplyCallback<SealReply> done) {
  Submit(request, deadline, std::move(done), &ParameterShard::Seal);
}

void ShardServer::Pull(const PullRequest& request, absl::Time deadline,
                       ReplyCallback<Frame<PullReply>> done) {
  PullInto(request, /*memory=*/nullptr, deadline, std::move(done));
}

void ShardServer::PullInto(const PullRequest& request, ValueMemory memory,
                           absl::Time deadline,
                           ReplyCallback<Frame<PullReply>> done) {
  Submit(request, deadline, std::move(done),
         [memory = std::move(memory)](ParameterShard& shard,
                                      const PullRequest& pull) {
           return shard.Pull(pull, memory);
         });
}

void ShardServer::Push(Frame<PushPart> request, absl::Time deadline,
                       ReplyCallback<Frame<PushReply>> done) {
  PushInto(std::move(request), PushContext(), deadline, std::move(done));
}

void ShardServer::PushInto(Frame<PushPart> request, PushContext context,
                           absl::Time deadline,
                           ReplyCallback<Frame<PushReply>> done) {
  SubmitPart(std::move(request), deadline, std::move(done),
             [context = std::move(context)](ParameterShard& shard,
                                            const Frame<PushPart>& push) {
               return shard.Push(push, context);
             });
}

void ShardServer::BeginSnapshot(const BeginSnapshotRequest& request,
                                absl::Time deadline,
                                ReplyCallback<BeginSnapshotReply> done) {
  Submit(request, deadline, std::move(done), &ParameterShard::BeginSnapshot);
}

void ShardServer::ReadSnapshot(const ReadSnapshotRequest& request,
                               absl::Time deadline,
                               ReplyCallback<Frame<SnapshotPart>> done) {
  Submit(request, deadline, std::move(done), &ParameterShard::ReadSnapshot);
}

void ShardServer::EndSnapshot(const EndSnapshotRequest& request,
                              absl::Time deadline,
                              ReplyCallback<EndSnapshotReply> done) {
  Submit(request, deadline, std::move(done), &ParameterShard::EndSnapshot);
}

absl::Status ShardServer::RunAndWait(absl::FunctionRef<void()> task) {
  absl::Notification done;
  const bool posted = strand_.Post([&] {
    task();
    done.Notify();
  });
  if (!posted) return ShuttingDown(options_.shard.ps_index);
  done.WaitForNotification();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ParameterMemory>>
ShardServer::ParametersInPlace(int64_t model_epoch) {
  absl::StatusOr<std::shared_ptr<const ParameterMemory>> memory;
  RETURN_IF_ERROR(
      RunAndWait([&] { memory = shard_.ParametersInPlace(model_epoch); }));
  return memory;
}

absl::StatusOr<std::shared_ptr<const char>> ShardServer::MapParameters(
    const Fence& fence, int64_t size_bytes) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const ParameterMemory> memory,
                   ParametersInPlace(fence.model_epoch()));
  if (memory->size_bytes() != size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "/job:ps/task:", options_.shard.ps_index, " has parameters of ",
        memory->size_bytes(), " bytes; wanted ", size_bytes));
  }
  return std::shared_ptr<const char>(memory, memory->data());
}

absl::Status ShardServer::KeepOnDevice(const Sender& sender, const Fence& fence,
                                       DeviceParameters* holder) {
  absl::Status status;
  RETURN_IF_ERROR(
      RunAndWait([&] { status = shard_.KeepOnDevice(sender, fence, holder); }));
  return status;
}

absl::StatusOr<PushReply> ShardServer::UpdateOnDevice(const PushPart& request) {
  absl::StatusOr<PushReply> reply;
  RETURN_IF_ERROR(RunAndWait([&] { reply = shard_.UpdateOnDevice(request); }));
  return reply;
}

void ShardServer::State(const StateRequest& request, absl::Time deadline,
                        ReplyCallback<ShardState> done) {
  Submit(request, deadline, std::move(done), &ParameterShard::StateOf);
}

}  // namespace muster
