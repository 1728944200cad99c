#include "ps_server/shard/duplicate_marks.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "ps_server/caller/takeover_token.h"

namespace muster {

bool DuplicateMarks::Worker::IsRetired(uint64_t incarnation) const {
  return std::find(retired.begin(), retired.end(), incarnation) !=
         retired.end();
}

void DuplicateMarks::Worker::CloseStep(int64_t* unfinished_steps) const {
  if (step > 0 && applied.count() < parts) ++*unfinished_steps;
}

void DuplicateMarks::Worker::Replace(uint64_t new_incarnation) {
  retired[num_retired % kRememberedIncarnations] = incarnation;
  ++num_retired;
  incarnation = new_incarnation;
  step = 0;
  parts = 0;
  applied.reset();
  outcomes = {};
}

const DuplicateMarks::Worker* DuplicateMarks::Find(const Sender& sender) const {
  const auto it = workers_.find(KeyOf(sender));
  return it == workers_.end() ? nullptr : &it->second;
}

absl::Status DuplicateMarks::CheckHello(const Sender& sender) {
  if (sender.incarnation() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Hello from ", TaskName(sender), ": the incarnation must not be 0"));
  }
  if (sender.task().job().size() > kMaxJobName) {
    return absl::InvalidArgumentError(
        absl::StrCat("Hello from ", TaskName(sender), "...: a job's name has ",
                     "at most ", kMaxJobName, " characters"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> DuplicateMarks::Admit(const Sender& sender,
                                               uint64_t takeover) {
  RETURN_IF_ERROR(CheckHello(sender));
  const uint64_t incarnation = sender.incarnation();
  const auto it = workers_.find(KeyOf(sender));
  if (it == workers_.end()) {
    const bool is_listed = listed_.Contains(KeyOf(sender));
    if (!is_listed && unlisted_ >= kMaxTasks) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "Hello from ", TaskName(sender), ": this ps serves ", kMaxTasks,
          " tasks already that its cluster does not list"));
    }
    if (!is_listed) ++unlisted_;
    workers_[KeyOf(sender)].incarnation = incarnation;
    return 0;
  }
  Worker& worker = it->second;
  if (worker.incarnation == incarnation) return 0;
  if (worker.IsRetired(incarnation)) return CheckCurrent(sender);
  const uint64_t wanted =
      TakeoverToken(worker.incarnation, incarnation, worker.num_retired);
  if (takeover != wanted) return wanted;
  worker.CloseStep(&unfinished_steps_);
  worker.Replace(incarnation);
  return 0;
}

absl::Status DuplicateMarks::CheckCurrent(const Sender& sender) const {
  const Worker* const worker = Find(sender);
  if (worker == nullptr || worker->incarnation == 0) {
    return FencedError(absl::StrCat(TaskName(sender),
                                    " has not said Hello to this ps process"));
  }
  if (worker->incarnation == sender.incarnation()) return absl::OkStatus();
  const std::string start =
      absl::StrCat("incarnation ", absl::Hex(sender.incarnation()), " of ",
                   TaskName(sender));
  if (worker->IsRetired(sender.incarnation())) {
    return FencedError(
        absl::StrCat(start, " was replaced by a newer start of that task"),
        ErrorReason::kReplaced);
  }
  return FencedError(
      absl::StrCat(start, " has not said Hello to this ps process"));
}

uint64_t DuplicateMarks::CurrentIncarnation(const Sender& sender) const {
  const Worker* const worker = Find(sender);
  return worker == nullptr ? 0 : worker->incarnation;
}

absl::StatusOr<std::optional<PartOutcome>> DuplicateMarks::FindOutcome(
    const Sender& sender, int64_t step, int32_t part, int32_t parts) const {
  const Worker& worker = *Find(sender);
  if (step > worker.step) return std::optional<PartOutcome>();
  if (step == worker.step) {
    if (parts != worker.parts) {
      return absl::InvalidArgumentError(absl::StrCat(
          "push of step ", step, " from ", TaskName(sender), ": it has ", parts,
          " parts, an earlier part of the step said ", worker.parts));
    }
    if (!worker.applied.test(part)) return std::optional<PartOutcome>();
  }
  for (const StepOutcome& known : worker.outcomes) {
    if (known.step == step) return std::optional<PartOutcome>(known.outcome);
  }
  // So old that nobody waits for the answer.
  return std::optional<PartOutcome>(PartOutcome());
}

PartOutcome DuplicateMarks::Record(const Sender& sender, int64_t step,
                                   int32_t part, int32_t parts,
                                   PartOutcome outcome) {
  Worker& worker = workers_[KeyOf(sender)];
  assert(step >= worker.step && part < parts && parts <= kMaxParts);
  StepOutcome& known = worker.outcomes[step % kRememberedSteps];
  if (step > worker.step) {
    worker.CloseStep(&unfinished_steps_);
    worker.step = step;
    worker.parts = parts;
    worker.applied.reset();
    known = {step, outcome};
  }
  worker.applied.set(part);
  known.outcome.late |= outcome.late;
  return known.outcome;
}

bool DuplicateMarks::IsNewStep(const Sender& sender, int64_t step) const {
  return step > Find(sender)->step;
}

void DuplicateMarks::ForgetSteps() {
  for (auto& [key, worker] : workers_) {
    worker.CloseStep(&unfinished_steps_);
    worker.step = 0;
    worker.parts = 0;
    worker.applied.reset();
    worker.outcomes = {};
  }
}

std::vector<DuplicateMark> DuplicateMarks::Export() const {
  std::vector<DuplicateMark> marks;
  for (const auto& [key, worker] : workers_) {
    if (worker.step == 0) continue;
    DuplicateMark& mark = marks.emplace_back();
    mark.mutable_sender()->mutable_task()->set_job(key.first);
    mark.mutable_sender()->mutable_task()->set_index(key.second);
    mark.mutable_sender()->set_incarnation(worker.incarnation);
    mark.set_step(worker.step);
    for (int32_t part = 0; part < worker.parts; ++part) {
      if (worker.applied.test(part)) mark.add_parts(part);
    }
  }
  return marks;
}

}  // namespace muster
