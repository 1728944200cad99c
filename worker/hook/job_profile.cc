#include "worker/hook/job_profile.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "common/rpc/clock_offset.h"
#include "worker/client/link/blocking_call.h"

namespace muster {
namespace {

constexpr absl::Duration kLookTimeout = absl::Seconds(2);
// Of at most kMaxProfilePartBytes.
constexpr absl::Duration kPartTimeout = absl::Seconds(10);

// Every step from here on, whatever its number is.
constexpr ProfiledSteps kFromNowOn = {1, std::numeric_limits<int64_t>::max()};

}  // namespace

JobProfile::Recording::Recording(const Options& options, const JobState& state)
    : number(state.profile_number()),
      steps_left(state.profile_steps()),
      timeline(TaskName(options.sender.task())),
      steps(options.spans, &timeline) {}

JobProfile::JobProfile(Options options, const Clock* clock, Reporter reporter)
    : options_(std::move(options)),
      clock_(*clock),
      reporter_(std::move(reporter)) {}

void JobProfile::TakeUp() {
  const JobState& state = options_.job_state();
  if (state.profile_number() == number_) return;
  number_ = state.profile_number();
  // A part of a profile that is over by now would be refused.
  recording_.reset();
  if (number_ != 0) {
    recording_ = std::make_unique<Recording>(options_, state);
  }
  options_.trace_devices(recording_ == nullptr ? ProfiledSteps() : kFromNowOn);
}

absl::Status JobProfile::AfterEnter(const EpochRecord& epoch) {
  static_cast<void>(epoch);
  TakeUp();
  return absl::OkStatus();
}

absl::Status JobProfile::AfterWait(int64_t global_step) {
  static_cast<void>(global_step);
  TakeUp();
  return absl::OkStatus();
}

absl::Status JobProfile::AfterStep(const StepRecord& step) {
  if (recording_ != nullptr) {
    recording_->steps.AddStep(step);
    if (--recording_->steps_left <= 0) Send();
  }
  TakeUp();
  return absl::OkStatus();
}

absl::Status JobProfile::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  if (recording_ != nullptr) Send();
  sender_.reset();
  return absl::OkStatus();
}

void JobProfile::Send() {
  const auto part = std::make_shared<ProfilePart>(recording_->timeline.Take());
  const int64_t number = recording_->number;
  recording_.reset();
  options_.trace_devices(ProfiledSteps());
  // The one of the profile before has ended, or is no longer wanted.
  sender_.reset();
  sender_ = clock_.StartThread([this, number, part] {
    const absl::Status sent = SendPart(number, std::move(*part));
    if (!sent.ok()) {
      reporter_.Warning(absl::StrCat("profile ", number,
                                     " lacks this worker: ", sent.message()));
    }
  });
}

absl::Status JobProfile::SendPart(int64_t number, ProfilePart part) const {
  RETURN_IF_ERROR(ReadClock(&part));
  AddProfileRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_number(number);
  *request.mutable_part() = std::move(part);
  return BlockingCall<AddProfileReply>(clock_,
                                       [&](auto done) {
                                         options_.coordination->Call(
                                             kAddProfileCall, request,
                                             clock_.Now() + kPartTimeout,
                                             std::move(done));
                                       })
      .status();
}

absl::Status JobProfile::ReadClock(ProfilePart* part) const {
  ClockOffset offset;
  for (int i = 0; i < ClockOffset::kLooks; ++i) {
    const absl::Time asked = clock_.Now();
    ASSIGN_OR_RETURN(const ProfileReply reply,
                     BlockingCall<ProfileReply>(clock_, [&](auto done) {
                       options_.coordination->Call(
                           kProfileCall, ProfileRequest(), asked + kLookTimeout,
                           std::move(done));
                     }));
    offset.Add(asked, reply.now_us(), clock_.Now());
  }
  part->set_to_first_ps_us(offset.offset_us());
  part->set_error_us(offset.error_us());
  return absl::OkStatus();
}

}  // namespace muster
