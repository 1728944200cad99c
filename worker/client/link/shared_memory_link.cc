#include "worker/client/link/shared_memory_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/call_table.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "common/shared_memory/handshake.h"
#include "common/shared_memory/memory_segment.h"
#include "common/shared_memory/slot_message.h"
#include "worker/client/link/blocking_call.h"

namespace muster {
namespace {

// A step of 13.1 MB, Adam, took 5 % less time than in parts of 1 MiB (2 cores
// of Zen 4), and 15 % less where the cores shared their caches with others:
// while the first part is copied in and the last one out, only one side works.
// Over gRPC such parts cost more in messages than they gain.
constexpr int64_t kMemoryPartBytes = kMaxPartBytes / 2;

// No round trip to fill; half of the slots, so that two transfers at a time
// (a pull beside a push) find their own.
constexpr int kMemoryWindowParts = kNumSlots / 2;

template <typename Reply>
SharedMemoryCaller::DoneCallback ParseAnswer(ReplyCallback<Reply> done) {
  return [done = std::move(done)](absl::StatusOr<SlotMessage> answer) {
    if (!answer.ok()) return done(answer.status());
    Reply reply;
    const absl::Status status = ParseSlotMessage(*std::move(answer), &reply);
    if (!status.ok()) return done(status);
    done(std::move(reply));
  };
}

absl::Status Closing() {
  return absl::CancelledError("the link to the ps is closing");
}

// Of parameters in place, in a row.
constexpr int kMostRefusals = 2;

// Another offer might do better; what the ps says of a model or of its room is
// as true of the next.
bool IsRefusal(const absl::Status& status) {
  return !absl::IsResourceExhausted(status) &&
         (IsTransient(status) || absl::IsPermissionDenied(status));
}

// The error of a failed attempt for who cannot do without.
absl::Status RequiredButMissing(const PeerName& peer,
                                const absl::Status& memory) {
  const std::string text =
      absl::StrCat(peer.task, " at ", peer.address,
                   ": no shared memory: ", memory.message());
  switch (memory.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
      return absl::FailedPreconditionError(
          absl::StrCat(text, "; start the worker with --link=auto or grpc"));
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

SharedMemoryLink::SharedMemoryLink(Options options,
                                   std::unique_ptr<ParameterLink> other)
    : options_(std::move(options)),
      other_(std::move(other)),
      thread_(options_.clock->StartThread([this] { Run(); })) {}

SharedMemoryLink::~SharedMemoryLink() {
  std::shared_ptr<SharedMemoryCaller> open;
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
    open = memory_;
  }
  if (open != nullptr) open->Shutdown();
  thread_.reset();
}

std::shared_ptr<SharedMemoryCaller> SharedMemoryLink::memory() const {
  absl::MutexLock lock(&mu_);
  return memory_;
}

int64_t SharedMemoryLink::best_part_bytes() const {
  return memory() == nullptr ? other_->best_part_bytes() : kMemoryPartBytes;
}

int SharedMemoryLink::best_window_parts() const {
  return memory() == nullptr ? other_->best_window_parts() : kMemoryWindowParts;
}

absl::Status SharedMemoryLink::NoMemory() const {
  return absl::UnavailableError(
      absl::StrCat(options_.peer.task, " at ", options_.peer.address,
                   ": the shared memory is gone; the next Hello asks for new"));
}

void SharedMemoryLink::Say(const std::string& line) {
  {
    absl::MutexLock lock(&mu_);
    if (said_ == line) return;
    said_ = line;
  }
  options_.reporter.Info(
      absl::StrCat("link to ", options_.peer.task, ": ", line));
}

// ---- Hello, and the memory that comes with it -----------------------------

bool SharedMemoryLink::WantsMemoryOf(uint64_t incarnation) const {
  absl::MutexLock lock(&mu_);
  const bool has_it = memory_ != nullptr && incarnation_ == incarnation;
  return !has_it && given_up_ != incarnation;
}

void SharedMemoryLink::CallBytes(const AnyMethod& method, std::string request,
                                 absl::Time deadline,
                                 ReplyCallback<std::string> done) {
  if (method == kHelloCall) {
    return Greet(std::move(request), deadline,
                 SerializeReply<HelloReply>(std::move(done)));
  }
  other_->CallBytes(method, std::move(request), deadline, std::move(done));
}

void SharedMemoryLink::Greet(std::string request, absl::Time deadline,
                             const ReplyCallback<HelloReply>& done) {
  const auto on_reply = [this, deadline,
                         done](absl::StatusOr<HelloReply> reply) {
    // Not greeted yet, if it is to be confirmed.
    if (!reply.ok() || reply->takeover() != 0 ||
        !WantsMemoryOf(reply->ps_incarnation())) {
      return done(std::move(reply));
    }
    Greeting greeting{*std::move(reply), {}, done};
    other_->Call(kOfferCall, {}, deadline,
                 [this, greeting = std::move(greeting)](
                     const absl::StatusOr<SharedMemoryOffer>& offer) {
                   OnOffer(greeting, offer);
                 });
  };
  other_->CallBytes(kHelloCall, std::move(request), deadline,
                    ParseReply(kHelloCall, on_reply));
}

void SharedMemoryLink::OnOffer(Greeting greeting,
                               const absl::StatusOr<SharedMemoryOffer>& offer) {
  if (absl::IsUnimplemented(offer.status())) {
    return Settle(greeting, absl::UnimplementedError("the ps offers none"));
  }
  if (!offer.ok()) return Settle(greeting, offer.status());
  greeting.offer = *offer;
  // The memory of a ps that is gone.
  std::shared_ptr<SharedMemoryCaller> stale;
  bool waits = false;
  {
    absl::MutexLock lock(&mu_);
    waits = !closing_ && (memory_ == nullptr ||
                          incarnation_ != greeting.reply.ps_incarnation());
    if (waits) {
      stale = memory_;
      greetings_.push_back(greeting);
    }
  }
  if (stale != nullptr) stale->Shutdown();
  if (!waits) greeting.done(greeting.reply);
}

void SharedMemoryLink::Settle(const Greeting& greeting,
                              const absl::Status& memory) {
  {
    absl::MutexLock lock(&mu_);
    lost_.clear();
  }
  if (memory.ok()) {
    Say("shared memory");
  } else if (options_.required) {
    return greeting.done(RequiredButMissing(options_.peer, memory));
  } else {
    Say(absl::StrCat("no shared memory: ", memory.message()));
  }
  greeting.done(greeting.reply);
}

// ---- The thread ---------------------------------------------------------

void SharedMemoryLink::Run() {
  for (;;) {
    const std::unique_ptr<Greeting> greeting = AwaitGreeting();
    if (greeting == nullptr) return;
    Connect(*greeting);
  }
}

std::unique_ptr<SharedMemoryLink::Greeting> SharedMemoryLink::AwaitGreeting() {
  std::deque<Greeting> unanswered;
  {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &SharedMemoryLink::HasWork));
    if (!closing_) {
      auto next = std::make_unique<Greeting>(std::move(greetings_.front()));
      greetings_.pop_front();
      return next;
    }
    unanswered.swap(greetings_);
  }
  for (const Greeting& greeting : unanswered) greeting.done(Closing());
  return nullptr;
}

void SharedMemoryLink::Connect(const Greeting& greeting) {
  absl::StatusOr<SharedPeer> peer =
      JoinSegment(greeting.offer.socket_name(), greeting.offer.token());
  if (absl::IsNotFound(peer.status())) {
    return Settle(greeting,
                  absl::UnavailableError(
                      "the ps is not on this machine, or in another network "
                      "namespace of it"));
  }
  if (!peer.ok()) return Settle(greeting, peer.status());
  const auto caller = std::make_shared<SharedMemoryCaller>(
      options_.peer, *std::move(peer), options_.clock);
  const std::vector<Greeting> same = Use(caller, greeting);
  Settle(greeting, absl::OkStatus());
  for (const Greeting& waiting : same) Settle(waiting, absl::OkStatus());
  Deliver(caller);
}

std::vector<SharedMemoryLink::Greeting> SharedMemoryLink::Use(
    const std::shared_ptr<SharedMemoryCaller>& caller,
    const Greeting& greeting) {
  const uint64_t incarnation = greeting.reply.ps_incarnation();
  std::vector<Greeting> same;
  std::deque<Greeting> others;
  bool is_stale = false;
  {
    absl::MutexLock lock(&mu_);
    memory_ = caller;
    incarnation_ = incarnation;
    for (Greeting& waiting : greetings_) {
      if (waiting.reply.ps_incarnation() == incarnation) {
        same.push_back(std::move(waiting));
      } else {
        others.push_back(std::move(waiting));
      }
    }
    greetings_ = std::move(others);
    is_stale = closing_ || !greetings_.empty();
  }
  if (is_stale) caller->Shutdown();
  return same;
}

void SharedMemoryLink::Deliver(
    const std::shared_ptr<SharedMemoryCaller>& caller) {
  const absl::Status lost = caller->Run();
  bool is_own_doing = false;
  {
    absl::MutexLock lock(&mu_);
    memory_ = nullptr;
    is_own_doing = closing_ || given_up_ == incarnation_;
    lost_ = is_own_doing ? "" : std::string(lost.message());
  }
  // Its replacement is named when it is there: most often the ps is gone.
  if (!is_own_doing) {
    Say(absl::StrCat("connection lost; ",
                     absl::IsUnavailable(lost)
                         ? absl::StrCat("the ps at ", options_.peer.address,
                                        " is gone or going")
                         : std::string(lost.message())));
  }
  caller->Fail(lost);
}

void SharedMemoryLink::SayInstead() {
  std::string lost;
  {
    absl::MutexLock lock(&mu_);
    lost.swap(lost_);
  }
  if (!lost.empty()) Say(absl::StrCat("no shared memory: ", lost));
}

template <typename Reply>
ReplyCallback<Reply> SharedMemoryLink::SayIfAnswered(
    ReplyCallback<Reply> done) {
  return [this, done = std::move(done)](absl::StatusOr<Reply> reply) {
    if (reply.ok()) SayInstead();
    done(std::move(reply));
  };
}

// ---- Messages with tensors ------------------------------------------------

template <typename Reply, typename Request>
bool SharedMemoryLink::CallMemory(DataMethod method, const Request& request,
                                  absl::Time deadline,
                                  ReplyCallback<Reply>* done) {
  const std::shared_ptr<SharedMemoryCaller> shared = memory();
  if (shared != nullptr) {
    shared->Call(method, ToSlotMessage(request), deadline,
                 ParseAnswer<Reply>(std::move(*done)));
    return true;
  }
  if (options_.required) (*done)(NoMemory());
  return options_.required;
}

void SharedMemoryLink::Load(Frame<LoadPart> request, absl::Time deadline,
                            ReplyCallback<LoadReply> done) {
  if (CallMemory(DataMethod::kLoad, request, deadline, &done)) return;
  other_->Load(std::move(request), deadline, SayIfAnswered(std::move(done)));
}

void SharedMemoryLink::Pull(const PullRequest& request, absl::Time deadline,
                            ReplyCallback<Frame<PullReply>> done) {
  if (CallMemory(DataMethod::kPull, request, deadline, &done)) return;
  other_->Pull(request, deadline, SayIfAnswered(std::move(done)));
}

void SharedMemoryLink::PullTo(std::shared_ptr<ValuePlace> place,
                              const PullRequest& request, absl::Time deadline,
                              ReplyCallback<Frame<PullReply>> done) {
  if (CallMemory(DataMethod::kPull, request, deadline, &done)) return;
  other_->PullTo(std::move(place), request, deadline,
                 SayIfAnswered(std::move(done)));
}

void SharedMemoryLink::Push(Frame<PushPart> request, absl::Time deadline,
                            ReplyCallback<Frame<PushReply>> done) {
  if (CallMemory(DataMethod::kPush, request, deadline, &done)) return;
  other_->Push(std::move(request), deadline, SayIfAnswered(std::move(done)));
}

void SharedMemoryLink::PushTo(std::shared_ptr<ValuePlace> place,
                              Frame<PushPart> request, absl::Time deadline,
                              ReplyCallback<Frame<PushReply>> done) {
  if (CallMemory(DataMethod::kPush, request, deadline, &done)) return;
  other_->PushTo(std::move(place), std::move(request), deadline,
                 SayIfAnswered(std::move(done)));
}

void SharedMemoryLink::PullRows(Frame<PullRowsRequest> request,
                                absl::Time deadline,
                                ReplyCallback<Frame<PullRowsReply>> done) {
  if (CallMemory(DataMethod::kPullRows, request, deadline, &done)) return;
  other_->PullRows(std::move(request), deadline,
                   SayIfAnswered(std::move(done)));
}

void SharedMemoryLink::ReadSnapshot(const ReadSnapshotRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<Frame<SnapshotPart>> done) {
  if (CallMemory(DataMethod::kReadSnapshot, request, deadline, &done)) return;
  other_->ReadSnapshot(request, deadline, SayIfAnswered(std::move(done)));
}

// ---- Parameters in place --------------------------------------------------

absl::StatusOr<std::shared_ptr<const char>> SharedMemoryLink::MapParameters(
    const Fence& fence, int64_t size_bytes) {
  if (memory() == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no shared memory with ", options_.peer.task));
  }
  absl::Status refused;
  for (int i = 0; i < kMostRefusals; ++i) {
    ASSIGN_OR_RETURN(const SharedMemoryOffer offer, AskForOffer());
    absl::StatusOr<MemorySegment> mapped = JoinParameters(
        offer.socket_name(), offer.token(), fence.model_epoch(), size_bytes);
    if (mapped.ok()) {
      const auto shared = std::make_shared<MemorySegment>(*std::move(mapped));
      return std::shared_ptr<const char>(shared, shared->data());
    }
    if (!IsRefusal(mapped.status())) return mapped.status();
    refused = mapped.status();
  }
  return GiveUpMemory(refused);
}

absl::StatusOr<SharedMemoryOffer> SharedMemoryLink::AskForOffer() {
  return BlockingCall<SharedMemoryOffer>(*options_.clock, [this](auto done) {
    other_->Call(kOfferCall, {}, options_.clock->Now() + kControlTimeout,
                 std::move(done));
  });
}

absl::Status SharedMemoryLink::GiveUpMemory(const absl::Status& why) {
  const std::string text = absl::StrCat(
      "the ps refused its memory ", kMostRefusals, " times: ", why.message());
  std::shared_ptr<SharedMemoryCaller> memory;
  if (!options_.required) {
    absl::MutexLock lock(&mu_);
    given_up_ = incarnation_;
    memory = memory_;
  }
  if (memory != nullptr) {
    Say(absl::StrCat("no shared memory: ", text));
    memory->Shutdown();
  }
  return absl::FailedPreconditionError(text);
}

}  // namespace muster
