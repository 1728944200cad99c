#include "worker/checkpoint/held_steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
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

// The mean, rounded up. A start that is gone has none: ps task 0 has counted
// the rows that it left in some shards.
int64_t RowsOfStep(const JobState& state, const Sender& sender,
                   int64_t step_rows) {
  for (const WorkerState& worker : state.workers()) {
    if (!(worker.sender().task() == sender.task())) continue;
    if (worker.lost() || !IsSameStart(worker.sender(), sender)) return 0;
    if (worker.steps() == 0) break;
    return (worker.examples() + worker.steps() - 1) / worker.steps();
  }
  return step_rows;
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

int64_t RowsOfPartialSteps(absl::Span<const BeginSnapshotReply> cuts,
                           absl::Span<const HeldStep> held,
                           const JobState& state, int64_t step_rows) {
  std::map<std::pair<std::string, uint64_t>, int64_t> partial;
  for (const BeginSnapshotReply& cut : cuts) {
    for (const DuplicateMark& mark : cut.marks()) {
      const auto whole =
          std::find_if(held.begin(), held.end(), [&mark](const HeldStep& step) {
            return IsSameStart(step.sender(), mark.sender());
          });
      // A start has at most one step that no shard holds whole.
      const int64_t steps =
          whole == held.end() ? 1 : mark.step() - whole->step();
      const Sender& sender = mark.sender();
      int64_t& most = partial[{TaskName(sender.task()), sender.incarnation()}];
      most = std::max(most, steps * RowsOfStep(state, sender, step_rows));
    }
  }
  int64_t rows = 0;
  for (const auto& [start, most] : partial) rows += most;
  return rows;
}

}  // namespace muster
