#include "ps_server/shard/duplicate_marks.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

const DuplicateMarks::Worker* DuplicateMarks::Find(const Sender& sender) const {
  const auto it = workers_.find(KeyOf(sender));
  return it == workers_.end() ? nullptr : &it->second;
}

void DuplicateMarks::CloseStep(const Worker& worker) {
  if (!worker.IsWhole()) ++unfinished_steps_;
}

absl::StatusOr<std::optional<PartOutcome>> DuplicateMarks::FindOutcome(
    const Sender& sender, int64_t step, int32_t part, int32_t parts) const {
  if (IsNewStep(sender, step)) return std::optional<PartOutcome>();
  const Worker& worker = *Find(sender);
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
                                   PartOutcome outcome,
                                   const StepCounts& counts) {
  Worker& worker = workers_[KeyOf(sender)];
  assert(step >= worker.step && part < parts && parts <= kMaxParts);
  StepOutcome& known = worker.outcomes[step % kRememberedSteps];
  if (step > worker.step) {
    CloseStep(worker);
    worker.incarnation = sender.incarnation();
    worker.step = step;
    worker.parts = parts;
    worker.applied.reset();
    known = {step, outcome};
  }
  worker.applied.set(part);
  known.outcome.late |= outcome.late;
  if (counts.steps() > 0 && worker.IsWhole()) {
    HeldStep& held = held_[KeyOf(sender)];
    *held.mutable_sender() = sender;
    held.set_step(step);
    *held.mutable_counts() = counts;
  }
  return known.outcome;
}

bool DuplicateMarks::IsNewStep(const Sender& sender, int64_t step) const {
  const Worker* const worker = Find(sender);
  return worker == nullptr || step > worker->step;
}

void DuplicateMarks::Forget(const Sender& sender) {
  const auto it = workers_.find(KeyOf(sender));
  if (it == workers_.end()) return;
  CloseStep(it->second);
  workers_.erase(it);
}

void DuplicateMarks::Clear() {
  for (const auto& [key, worker] : workers_) CloseStep(worker);
  workers_.clear();
  held_.clear();
}

std::vector<HeldStep> DuplicateMarks::HeldSteps() const {
  std::vector<HeldStep> steps;
  for (const auto& [key, held] : held_) steps.push_back(held);
  return steps;
}

std::vector<DuplicateMark> DuplicateMarks::Export() const {
  std::vector<DuplicateMark> marks;
  for (const auto& [key, worker] : workers_) {
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
