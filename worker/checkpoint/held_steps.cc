#include "worker/checkpoint/held_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

bool IsSameStart(const Sender& a, const Sender& b) {
  return a.task() == b.task() && a.incarnation() == b.incarnation();
}

const HeldStep* FindHeld(const BeginSnapshotReply& cut, const Sender& sender) {
  const auto held = std::find_if(
      cut.held().begin(), cut.held().end(),
      [&](const HeldStep& step) { return IsSameStart(step.sender(), sender); });
  return held == cut.held().end() ? nullptr : &*held;
}

std::optional<HeldStep> OnAllShards(const Sender& sender,
                                    absl::Span<const BeginSnapshotReply> cuts) {
  const HeldStep* oldest = nullptr;
  for (const BeginSnapshotReply& cut : cuts) {
    if (!cut.is_pushed_to()) continue;
    const HeldStep* const held = FindHeld(cut, sender);
    if (held == nullptr) return std::nullopt;
    if (oldest == nullptr || held->step() < oldest->step()) oldest = held;
  }
  if (oldest == nullptr) return std::nullopt;
  return *oldest;
}

WorkerState& FindOrAddWorker(const Sender& sender, JobState* state) {
  for (WorkerState& worker : *state->mutable_workers()) {
    if (worker.sender().task() == sender.task()) return worker;
  }
  WorkerState& added = *state->add_workers();
  *added.mutable_sender() = sender;
  return added;
}

absl::Status CheckStillCurrent(const ConfirmCutReply& reply,
                               const JobState& state) {
  for (const WorkerState& worker : state.workers()) {
    for (const Sender& replaced : reply.replaced()) {
      if (!IsSameStart(worker.sender(), replaced)) continue;
      return absl::AbortedError(
          absl::StrCat("cut of a checkpoint: ", TaskName(replaced.task()),
                       " was started anew meanwhile; cut again"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<HeldStep> StepsOnAllShards(
    absl::Span<const BeginSnapshotReply> cuts) {
  const auto first = std::find_if(
      cuts.begin(), cuts.end(),
      [](const BeginSnapshotReply& cut) { return cut.is_pushed_to(); });
  std::vector<HeldStep> steps;
  if (first == cuts.end()) return steps;
  for (const HeldStep& of_first : first->held()) {
    std::optional<HeldStep> held = OnAllShards(of_first.sender(), cuts);
    if (held.has_value()) steps.push_back(*std::move(held));
  }
  return steps;
}

absl::Status CountHeldSteps(const ConfirmCutReply& reply, JobState* state) {
  RETURN_IF_ERROR(CheckStillCurrent(reply, *state));
  for (const HeldStep& held : reply.counted()) {
    WorkerState& worker = FindOrAddWorker(held.sender(), state);
    const StepCounts& counts = held.counts();
    const int64_t steps = counts.steps() - worker.steps();
    if (steps <= 0) continue;
    state->set_global_step(state->global_step() + steps);
    state->set_examples(state->examples() + counts.examples() -
                        worker.examples());
    worker.set_steps(counts.steps());
    worker.set_examples(counts.examples());
  }
  return absl::OkStatus();
}

std::vector<HeldStep> BegunSteps(absl::Span<const BeginSnapshotReply> cuts) {
  std::vector<HeldStep> begun;
  for (const BeginSnapshotReply& cut : cuts) {
    for (const DuplicateMark& mark : cut.marks()) {
      const auto known = std::find_if(
          begun.begin(), begun.end(), [&mark](const HeldStep& step) {
            return IsSameStart(step.sender(), mark.sender());
          });
      HeldStep& newest = known == begun.end() ? begun.emplace_back() : *known;
      *newest.mutable_sender() = mark.sender();
      newest.set_step(std::max(newest.step(), mark.step()));
    }
  }
  return begun;
}

}  // namespace muster
