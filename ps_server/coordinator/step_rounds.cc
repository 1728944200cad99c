#include "ps_server/coordinator/step_rounds.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

Delivery Delivery::Of(const StepRequest& report) {
  return {report.sender(), report.step(),      report.examples(),
          report.loss(),   report.staleness(), {}};
}

absl::Status StepRounds::Check(const SyncReplication& spec) {
  const int64_t aggregated = spec.replicas_to_aggregate();
  const bool is_open = spec.total_replicas() == 0;
  if (aggregated < 0 ||
      (!is_open && (aggregated < 1 || aggregated > spec.total_replicas()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replication.sync.replicas_to_aggregate is ", aggregated,
        "; wanted 1 to total_replicas, which is ", spec.total_replicas()));
  }
  if (spec.min_replicas() < 0 ||
      (aggregated > 0 && spec.min_replicas() > aggregated)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replication.sync.min_replicas is ", spec.min_replicas(),
        "; wanted 0 to replicas_to_aggregate, which is ", aggregated));
  }
  if (!TooFewReplicas_IsValid(spec.when_too_few())) {
    return absl::InvalidArgumentError(
        absl::StrCat("replication.sync.when_too_few is ",
                     static_cast<int>(spec.when_too_few()),
                     "; this version knows WAIT and EXIT"));
  }
  return absl::OkStatus();
}

StepRounds::StepRounds(const SyncReplication& spec, int64_t global_step,
                       std::set<TaskKey> known, absl::Time assembled_at)
    : replicas_to_aggregate_(spec.replicas_to_aggregate() == 0
                                 ? std::numeric_limits<int64_t>::max()
                                 : spec.replicas_to_aggregate()),
      total_replicas_(spec.total_replicas()),
      min_replicas_(std::max(1, spec.min_replicas())),
      ends_when_too_few_(spec.when_too_few() == EXIT),
      known_(std::move(known)),
      assembled_at_(assembled_at),
      round_(global_step + 1) {}

StepToken StepRounds::token() const {
  StepToken token;
  token.set_round(round_);
  token.mutable_chosen()->Add(last_chosen_.begin(), last_chosen_.end());
  return token;
}

bool StepRounds::IsIdle() const {
  return is_open_ && joined_.empty() && deliveries_.empty();
}

void StepRounds::Join(const TaskKey& task) {
  assert(is_open_ && !HasDelivered(task));
  joined_.insert(task);
}

bool StepRounds::HasJoined(const TaskKey& task) const {
  return joined_.count(task) != 0;
}

void StepRounds::Leave(const TaskKey& task) { joined_.erase(task); }

void StepRounds::Withdraw(const TaskKey& task) {
  Leave(task);
  if (delivered_.erase(task) == 0) return;
  deliveries_.erase(std::remove_if(deliveries_.begin(), deliveries_.end(),
                                   [&task](const Delivery& delivery) {
                                     return KeyOf(delivery.sender) == task;
                                   }),
                    deliveries_.end());
}

bool StepRounds::Deliver(Delivery delivery) {
  assert(is_open_);
  if (!delivered_.insert(KeyOf(delivery.sender)).second) return false;
  Leave(KeyOf(delivery.sender));
  deliveries_.push_back(std::move(delivery));
  return true;
}

bool StepRounds::HasDelivered(const TaskKey& task) const {
  return delivered_.count(task) != 0;
}

int64_t StepRounds::Present(const std::set<TaskKey>& live) const {
  const auto gone = std::count_if(
      delivered_.begin(), delivered_.end(),
      [&live](const TaskKey& task) { return live.count(task) == 0; });
  return static_cast<int64_t>(live.size()) + gone;
}

int64_t StepRounds::Awaited() const {
  if (assembled_at_ == absl::InfinitePast()) return 0;
  return std::max<int64_t>(
      0, total_replicas_ - static_cast<int64_t>(known_.size()));
}

int64_t StepRounds::Needed(const std::set<TaskKey>& live,
                           int64_t without_rows) const {
  return std::max(min_replicas_,
                  std::min(replicas_to_aggregate_,
                           Present(live) - without_rows + Awaited()));
}

bool StepRounds::TooFew(const std::set<TaskKey>& live) const {
  return Present(live) < min_replicas_;
}

int64_t StepRounds::GradientsOfUpdate(const std::set<TaskKey>& live) const {
  if (live.empty() || TooFew(live)) return 0;
  return std::min(replicas_to_aggregate_,
                  static_cast<int64_t>(live.size()) + Awaited());
}

void StepRounds::SeeLive(const std::set<TaskKey>& live, absl::Time now) {
  known_.insert(live.begin(), live.end());
  if (now >= assembled_at_) assembled_at_ = absl::InfinitePast();
  if (!TooFew(live)) had_enough_ = true;
  must_end_ = ends_when_too_few_ && had_enough_ && TooFew(live);
}

std::vector<TaskKey> StepRounds::Missing(const std::set<TaskKey>& live) const {
  std::vector<TaskKey> missing;
  std::set_difference(live.begin(), live.end(), delivered_.begin(),
                      delivered_.end(), std::back_inserter(missing));
  return missing;
}

std::optional<DecidedSteps> StepRounds::TryClose(const std::set<TaskKey>& live,
                                                 absl::Time now,
                                                 int64_t without_rows) {
  if (now >= held_until_) Release();
  SeeLive(live, now);
  const int64_t needed = Needed(live, without_rows);
  if (!is_open_ || live.empty() || is_held() ||
      static_cast<int64_t>(deliveries_.size()) < needed) {
    return std::nullopt;
  }
  DecidedSteps closed;
  const auto end_of_chosen = deliveries_.begin() + needed;
  closed.chosen.assign(deliveries_.begin(), end_of_chosen);
  closed.dropped.assign(end_of_chosen, deliveries_.end());
  std::sort(closed.chosen.begin(), closed.chosen.end(),
            [](const Delivery& a, const Delivery& b) {
              return KeyOf(a.sender) < KeyOf(b.sender);
            });
  last_chosen_.clear();
  for (const Delivery& delivery : closed.chosen) {
    ChosenStep& step = last_chosen_.emplace_back();
    *step.mutable_sender() = delivery.sender;
    step.set_step(delivery.step);
  }
  ++round_;
  is_open_ = false;
  joined_.clear();
  deliveries_.clear();
  delivered_.clear();
  return closed;
}

}  // namespace muster
