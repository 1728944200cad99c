#include "ps_server/service/shard_server.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/config/namespace_name.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/namespace_of.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/service/recorded_request.h"

namespace muster {
namespace {

absl::Status ShuttingDown(int32_t ps_index) {
  return absl::UnavailableError(
      absl::StrCat("/job:ps/task:", ps_index, " is shutting down"));
}

template <typename Request>
auto HasSender(const Request& request, int /*first*/)
    -> decltype(request.sender(), true) {
  return true;
}
template <typename Request>
bool HasSender(const Request& /*request*/, char /*second*/) {
  return false;
}

// The cost of reading them; senders write what they like.
template <typename Slices>
int64_t BytesOf(const Slices& slices) {
  constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
  constexpr int64_t kMost = kMaxPartBytes / kValueBytes;
  int64_t elements = 0;
  for (const TensorSlice& slice : slices) {
    const int64_t length = std::clamp<int64_t>(slice.length(), 0, kMost);
    elements = std::min(kMost, elements + length);
  }
  return elements * kValueBytes;
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
      shard_(ShardOptionsWithTeam()),
      queue_(options_.shard.max_namespaces > 0 ? std::make_unique<FairQueue>()
                                               : nullptr),
      strand_(options_.clock) {
  ServeCalls();
}

ShardOptions ShardServer::ShardOptionsWithTeam() const {
  ShardOptions shard = options_.shard;
  shard.apply_team = apply_team_.get();
  return shard;
}

ShardServer::~ShardServer() { Close(); }

void ShardServer::Close() {
  strand_.Close();
  if (queue_ == nullptr) return;
  // Those whose turn another one took when it closed.
  while (const FairQueue::Task task = queue_->Pop()) task();
}

bool ShardServer::Post(absl::string_view space, int64_t bytes,
                       Strand::Task task) {
  if (queue_ == nullptr) return strand_.Post(std::move(task));
  const std::string lane(space);
  const uint64_t number = queue_->Push(lane, bytes, std::move(task));
  const bool posted = strand_.Post([this] {
    if (const FairQueue::Task next = queue_->Pop()) next();
  });
  // If it has run by now, another one waits in its place, for Close.
  return posted || !queue_->Remove(lane, number);
}

template <typename Request>
void ShardServer::NoteRequest(const Request& request, absl::Time now) {
  if (HasSender(request, 0)) last_request_ns_ = absl::ToUnixNanos(now);
}

template <typename Request>
RecordedTurn ShardServer::RecordTurn(const Request& request, absl::Time asked) {
  if (asked == absl::InfinitePast()) return {nullptr, {}};
  const PartRecorder::Turn turn = TurnOf(request, asked);
  return {turn.sender == nullptr ? nullptr
                                 : shard_.recorder(turn.sender->namespace_()),
          turn};
}

template <typename Reply, typename Request, typename Method>
void ShardServer::Submit(Request request, int64_t bytes, absl::Time deadline,
                         ReplyCallback<Reply> done, Method method) {
  const std::string space(NamespaceOf(request));
  const bool posted =
      Post(space, bytes,
           [this, request = std::move(request), deadline, done, method,
            asked = AskedNow()] {
             const absl::Time now = options_.clock->Now();
             NoteRequest(request, now);
             if (now >= deadline) {
               return done(TooLate(options_.shard.ps_index));
             }
             const RecordedTurn turn = RecordTurn(request, asked);
             done(absl::StatusOr<Reply>(std::invoke(method, shard_, request)));
           });
  if (!posted) done(ShuttingDown(options_.shard.ps_index));
}

template <typename Reply, typename Header, typename Method>
void ShardServer::SubmitPart(Frame<Header> request, absl::Time deadline,
                             ReplyCallback<Reply> done, Method method) {
  const auto bytes = static_cast<int64_t>(request.data.size());
  const std::string space(NamespaceOf(request.header));
  const absl::Status admitted = budget_.Admit(bytes, space);
  if (!admitted.ok()) return done(admitted);
  const bool posted =
      Post(space, bytes,
           [this, request = std::move(request), deadline, done, method, bytes,
            asked = AskedNow()] {
             const absl::string_view name = NamespaceOf(request.header);
             const absl::Time start = options_.clock->Now();
             NoteRequest(request.header, start);
             if (start >= deadline) {
               budget_.Release(bytes, absl::ZeroDuration(), name);
               return done(TooLate(options_.shard.ps_index));
             }
             const RecordedTurn turn = RecordTurn(request, asked);
             absl::StatusOr<Reply> reply = std::invoke(method, shard_, request);
             budget_.Release(bytes, options_.clock->Now() - start, name);
             done(std::move(reply));
           });
  if (posted) return;
  budget_.Release(bytes, absl::ZeroDuration(), space);
  done(ShuttingDown(options_.shard.ps_index));
}

void ShardServer::TellPhases() {
  if (!options_.on_phase_change) return;
  std::map<std::string, ShardPhase> gone = told_phases_;
  shard_.ForEachModel([&](const std::string& space, const ShardModel& model) {
    gone.erase(space);
    if (model.phase() == told_phases_[space]) return;
    told_phases_[space] = model.phase();
    options_.on_phase_change(space, model.State(), model.optimizer_name());
  });
  for (const auto& [space, phase] : gone) {
    told_phases_.erase(space);
    told_rates_.erase(space);
    if (phase != EMPTY) options_.on_phase_change(space, ShardState(), "");
  }
}

void ShardServer::TellRates() {
  shard_.ForEachModel([&](const std::string& space, const ShardModel& model) {
    const absl::string_view difference = model.RateDifference();
    if (difference.empty() || !told_rates_.insert(space).second) return;
    options_.reporter.Warning(absl::StrCat(
        space.empty() ? "" : absl::StrCat(QuotedNamespace(space), ": "),
        difference));
  });
}

void ShardServer::ServeCalls() {
  const auto serve = [this](const auto& row, auto method) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row, [this, method](const typename Row::Request& request,
                                      absl::Time deadline, auto done) {
      this->template Submit<typename Row::Reply>(
          request, /*bytes=*/0, deadline, std::move(done),
          [this, method](ParameterShard& shard,
                         const typename Row::Request& call) {
            auto reply = std::invoke(method, shard, call);
            TellPhases();
            return reply;
          });
    });
  };
  ParameterShard::VisitCalls(serve);
  serve(kHelloCall, [this](ParameterShard& shard, const HelloRequest& hello) {
    return Greet(shard, hello);
  });
  calls_.Handle(
      kProfileCall, [this](const ProfileRequest& request, absl::Time deadline,
                           ReplyCallback<ProfileReply> done) {
        // Its turn would be a part of the way there.
        if (request.action() == ProfileRequest::READ_CLOCK) {
          return done(Profile(shard_, request));
        }
        Submit(request, /*bytes=*/0, deadline, std::move(done),
               [this](ParameterShard& shard, const ProfileRequest& call) {
                 return Profile(shard, call);
               });
      });
}

// READ_CLOCK from any thread.
absl::StatusOr<ProfileReply> ShardServer::Profile(
    ParameterShard& shard, const ProfileRequest& request) {
  ProfileReply reply;
  const std::string what =
      absl::StrCat("profile of /job:ps/task:", options_.shard.ps_index);
  if (request.action() == ProfileRequest::BEGIN) {
    ASSIGN_OR_RETURN(ShardModel* const model,
                     shard.FindModel(what, request.namespace_()));
    model->Record({options_.shard.ps_index, options_.clock, &recorders_});
  } else if (request.action() == ProfileRequest::END) {
    ASSIGN_OR_RETURN(ShardModel* const model,
                     shard.FindModel(what, request.namespace_()));
    std::optional<ProfilePart> part = model->EndRecord();
    if (!part.has_value()) {
      return absl::NotFoundError(absl::StrCat(
          what, ": nothing is recorded; was it started anew since?"));
    }
    *reply.mutable_part() = *std::move(part);
  } else if (request.action() != ProfileRequest::READ_CLOCK) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": action ", request.action(),
                     " is not one that this ps knows; is musterctl newer?"));
  }
  reply.set_now_us(absl::ToUnixMicros(options_.clock->Now()));
  return reply;
}

absl::StatusOr<HelloReply> ShardServer::Greet(
    ParameterShard& shard, const HelloRequest& request) const {
  const uint64_t before = shard.CurrentIncarnation(request.sender());
  absl::StatusOr<HelloReply> reply = shard.Hello(request);
  const uint64_t after = shard.CurrentIncarnation(request.sender());
  if (before != 0 && after != before) {
    const std::string& space = request.sender().namespace_();
    options_.reporter.Info(absl::StrCat(
        space.empty() ? "" : absl::StrCat(QuotedNamespace(space), ": "),
        TaskName(request.sender()), " was started anew: incarnation ",
        absl::Hex(after), " replaces ", absl::Hex(before)));
  }
  return reply;
}

void ShardServer::Load(Frame<LoadPart> request, absl::Time deadline,
                       ReplyCallback<LoadReply> done) {
  SubmitPart(std::move(request), deadline, std::move(done),
             &ParameterShard::Load);
}

void ShardServer::Pull(const PullRequest& request, absl::Time deadline,
                       ReplyCallback<Frame<PullReply>> done) {
  PullInto(request, /*memory=*/nullptr, deadline, std::move(done));
}

void ShardServer::PullInto(const PullRequest& request, ValueMemory memory,
                           absl::Time deadline,
                           ReplyCallback<Frame<PullReply>> done) {
  Submit(request, BytesOf(request.slices()), deadline, std::move(done),
         [this, memory = std::move(memory)](ParameterShard& shard,
                                            const PullRequest& pull) {
           absl::StatusOr<Frame<PullReply>> reply = shard.Pull(pull, memory);
           TellRates();
           return reply;
         });
}

void ShardServer::PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                           ReplyCallback<Frame<PullRowsReply>> done) {
  PullRowsInto(std::move(request), /*memory=*/nullptr, deadline,
               std::move(done));
}

void ShardServer::PullRowsInto(Frame<PullRowsRequest> request,
                               ValueMemory memory, absl::Time deadline,
                               ReplyCallback<Frame<PullRowsReply>> done) {
  SubmitPart(std::move(request), deadline, std::move(done),
             [this, memory = std::move(memory)](
                 ParameterShard& shard, const Frame<PullRowsRequest>& pull) {
               absl::StatusOr<Frame<PullRowsReply>> reply =
                   shard.PullRows(pull, memory);
               TellRates();
               return reply;
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

void ShardServer::ReadSnapshot(const ReadSnapshotRequest& request,
                               absl::Time deadline,
                               ReplyCallback<Frame<SnapshotPart>> done) {
  const int64_t bytes =
      request.table().empty() ? BytesOf(request.slices()) : kMaxPartBytes;
  Submit(request, bytes, deadline, std::move(done),
         &ParameterShard::ReadSnapshot);
}

ShardCounters ShardServer::counters() const {
  ShardCounters sum;
  shard_.ForEachModel([&sum](const std::string&, const ShardModel& model) {
    sum.Add(model.counters());
  });
  return sum;
}

bool ShardServer::Look(std::function<void(ShardLook)> done) {
  return Post(/*space=*/"", /*bytes=*/0, [this, done = std::move(done)] {
    ShardLook look;
    look.max_bytes = options_.shard.max_bytes;
    look.refused_for_memory = budget_.refused();
    shard_.ForEachModel(
        [&look](const std::string& space, const ShardModel& model) {
          look.models.push_back({space, model.State(), model.counters()});
        });
    done(std::move(look));
  });
}

bool ShardServer::IsBeingSaved() {
  bool found = false;
  // Once closed, none is.
  RunAndWait([&] {
    shard_.ForEachModel([&found](const std::string&, const ShardModel& model) {
      found |= model.has_snapshot();
    });
  }).IgnoreError();
  return found;
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

}  // namespace muster
