#include "ps_server/coordinator/profiles.h"

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/summary/profile_timeline.h"

namespace muster {
namespace {

absl::string_view WhyNotIn(JobPhase phase) {
  switch (phase) {
    case INITIAL:
      return "no model is committed, so that nobody trains yet";
    case STOPPING:
      return "its last steps are being made";
    default:
      return "nobody takes a step any more";
  }
}

}  // namespace

absl::StatusOr<BeginProfileReply> Profiles::Begin(
    const BeginProfileRequest& request, absl::Time now) {
  if (request.steps() < 1 || request.steps() > kMostSteps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "profile: of ", request.steps(), " steps; wanted 1 to ", kMostSteps));
  }
  if (job_.phase() != RUNNING) {
    return absl::FailedPreconditionError(
        absl::StrCat("profile: the job is ", JobPhase_Name(job_.phase()), ": ",
                     WhyNotIn(job_.phase())));
  }
  Clear();
  ++newest_;
  steps_ = request.steps();
  until_ = now + kKept;
  for (const auto& [key, worker] : job_.members()) {
    if (worker.TakesSteps()) asked_[key] = {worker.sender.incarnation()};
  }
  BeginProfileReply reply;
  reply.set_number(newest_);
  return reply;
}

absl::Status Profiles::CheckPart(const AddProfileRequest& request) const {
  const std::string task = TaskName(request.sender());
  const std::string what = absl::StrCat("profile of ", task);
  if (steps_ == 0 || request.number() != newest_) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": it is part of profile ", request.number(),
                     ", which nobody waits for any more"));
  }
  const auto bytes = static_cast<int64_t>(request.part().ByteSizeLong());
  if (bytes > kMaxProfilePartBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": ", bytes, " bytes; wanted at most ", kMaxProfilePartBytes));
  }
  if (request.part().task() != task) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": it is of '", EscapeForLog(request.part().task(), 80), "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AddProfileReply> Profiles::Add(
    const AddProfileRequest& request) {
  RETURN_IF_ERROR(CheckPart(request));
  const TaskKey key = KeyOf(request.sender());
  for (const ProfilePart& part : parts_) {
    if (part.task() == request.part().task()) return AddProfileReply();
  }
  const auto bytes = static_cast<int64_t>(request.part().ByteSizeLong());
  if (bytes_ + bytes > kMostBytes) {
    asked_[key].had_no_room = true;
    return absl::ResourceExhaustedError(
        absl::StrCat("profile of ", TaskName(key), ": ", bytes,
                     " bytes, the parts of others take ", bytes_, " of ",
                     kMostBytes, "; ask for fewer steps"));
  }
  bytes_ += bytes;
  parts_.push_back(request.part());
  asked_.erase(key);
  return AddProfileReply();
}

absl::StatusOr<GetProfileReply> Profiles::Get(
    const GetProfileRequest& request) const {
  if (request.number() < newest_ && request.number() > 0) {
    return absl::AbortedError(absl::StrCat("profile ", request.number(),
                                           ": somebody has begun another one, ",
                                           newest_, ", in its place"));
  }
  if (steps_ == 0 || request.number() != newest_) {
    return absl::NotFoundError(
        absl::StrCat("profile ", request.number(),
                     " is not here: /job:ps/task:0 was started anew, or the "
                     "job was, or it has waited too long"));
  }
  if (request.index() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile: part ", request.index(), "; wanted 0 or more"));
  }
  GetProfileReply reply;
  reply.set_parts(static_cast<int32_t>(parts_.size()));
  if (request.index() < reply.parts()) {
    *reply.mutable_part() = parts_[request.index()];
    return reply;
  }
  for (const auto& [key, asked] : asked_) {
    const std::string why = WhyMissing(key, asked);
    if (why.empty()) {
      TaskId& awaited = *reply.add_awaited();
      awaited.set_job(key.first);
      awaited.set_index(key.second);
    } else {
      reply.add_missing(absl::StrCat(TaskName(key), ": ", why));
    }
  }
  return reply;
}

std::string Profiles::WhyMissing(const TaskKey& key, const Asked& asked) const {
  if (asked.had_no_room) return "its part found no room";
  const CoordinatorWorker* const worker = job_.members().Find(key);
  if (worker == nullptr || worker->sender.incarnation() != asked.incarnation) {
    return "was started anew";
  }
  if (worker->state == MemberState::kLost) return "lost";
  if (worker->HasFinished()) return "has finished";
  return "";
}

void Profiles::Clear() {
  steps_ = 0;
  until_ = absl::InfiniteFuture();
  asked_.clear();
  parts_.clear();
  bytes_ = 0;
}

void Profiles::AddTo(JobState& state) const {
  for (const auto& [key, asked] : asked_) {
    if (!WhyMissing(key, asked).empty()) continue;
    state.set_profile_number(newest_);
    state.set_profile_steps(steps_);
    return;
  }
}

}  // namespace muster
