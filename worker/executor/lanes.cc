#include "worker/executor/lanes.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace muster {

Lanes::Lanes(LaneSchedule schedule, std::vector<size_t> told, Execute execute,
             LaneWatch watch, LateWork late)
    : schedule_(std::move(schedule)),
      told_(std::move(told)),
      execute_(std::move(execute)),
      watch_(std::move(watch)),
      late_(std::move(late)),
      next_(schedule_.lanes.size(), 0),
      is_waiting_(schedule_.lanes.size(), false),
      seen_(schedule_.lanes.size(), 0) {
  for (size_t lane = 0; lane < schedule_.lanes.size(); ++lane) {
    threads_.push_back(std::make_unique<RepeatingThread>(
        [this, lane] { RunLane(static_cast<int>(lane)); }));
  }
  if (watch_.on_stalled == nullptr) return;
  watcher_ = SystemClock()->StartThread([this] { WatchLanes(); });
}

Lanes::~Lanes() {
  absl::MutexLock lock(&mu_);
  is_ending_ = true;
}

bool Lanes::Wanted::IsOver() const {
  if (!lanes.error_.ok()) return true;
  if (lane >= 0) return lanes.next_[lane] > instruction;
  return std::all_of(lanes.next_.begin(), lanes.next_.end(),
                     [this](size_t next) { return next > instruction; });
}

absl::Status Lanes::Run(Tell tell) {
  {
    absl::MutexLock lock(&mu_);
    error_ = absl::OkStatus();
    run_ = ++num_runs_;
    for (size_t lane = 0; lane < next_.size(); ++lane) {
      next_[lane] = Next(static_cast<int>(lane), 0);
    }
  }
  for (const auto& thread : threads_) thread->Start();
  for (const size_t instruction : told_) {
    if (!Await({*this, instruction})) break;
    const absl::Status status = tell(instruction);
    if (!status.ok()) Fail(status);
  }
  for (const auto& thread : threads_) thread->Wait();
  absl::MutexLock lock(&mu_);
  run_ = 0;
  return error_;
}

void Lanes::RunLane(int lane) {
  absl::Status status;
  if (late_.begin != nullptr) status = late_.begin(lane);
  if (status.ok()) status = RunInstructions(lane);
  Fail(status);
  if (late_.end != nullptr) Fail(late_.end(lane, HasFailed()));
}

// An error of another lane ends it, too.
absl::Status Lanes::RunInstructions(int lane) {
  Place place;
  place.lane = lane;
  for (const size_t instruction : schedule_.lanes[lane]) {
    ASSIGN_OR_RETURN(const bool goes_on, AwaitEvents(&place));
    if (!goes_on) return absl::OkStatus();
    RETURN_IF_ERROR(execute_(instruction));
    if (EndsLate(place, place.begun)) ++place.open;
    ++place.begun;
    RETURN_IF_ERROR(Finish(&place, kMostOpen));
    if (HasFailed()) return absl::OkStatus();
  }
  return Finish(&place, /*most_open=*/0);
}

// Before it stands still others hear of all that is done.
absl::StatusOr<bool> Lanes::AwaitEvents(Place* place) {
  const int lane = place->lane;
  const size_t instruction = schedule_.lanes[lane][place->begun];
  for (const LaneSchedule::Event& event : schedule_.waits[instruction]) {
    const Wanted wanted = {*this, event.instruction, event.lane};
    if (place->open > 0 && !IsOver(wanted)) {
      RETURN_IF_ERROR(Finish(place, /*most_open=*/0));
    }
    if (!AwaitInLane(wanted, lane)) return false;
  }
  return true;
}

bool Lanes::IsOver(const Wanted& wanted) {
  absl::MutexLock lock(&mu_);
  return absl::Condition(&wanted, &Wanted::IsOver).Eval();
}

bool Lanes::EndsLate(const Place& place, size_t i) const {
  const size_t instruction = schedule_.lanes[place.lane][i];
  return instruction < schedule_.ends_late.size() &&
         schedule_.ends_late[instruction];
}

absl::Status Lanes::Finish(Place* place, size_t most_open) {
  while (place->over < place->begun) {
    if (EndsLate(*place, place->over)) {
      if (place->open <= most_open) break;
      RETURN_IF_ERROR(late_.finish(schedule_.lanes[place->lane][place->over]));
      --place->open;
    }
    ++place->over;
  }
  absl::MutexLock lock(&mu_);
  next_[place->lane] = Next(place->lane, place->over);
  return absl::OkStatus();
}

bool Lanes::HasFailed() {
  absl::MutexLock lock(&mu_);
  return !error_.ok();
}

bool Lanes::Await(const Wanted& wanted) {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&wanted, &Wanted::IsOver));
  return error_.ok();
}

bool Lanes::AwaitInLane(const Wanted& wanted, int lane) {
  absl::MutexLock lock(&mu_);
  is_waiting_[lane] = true;
  mu_.Await(absl::Condition(&wanted, &Wanted::IsOver));
  is_waiting_[lane] = false;
  return error_.ok();
}

void Lanes::WatchLanes() {
  for (;;) {
    std::vector<std::pair<int, size_t>> stalled;
    {
      absl::MutexLock lock(&mu_);
      if (SystemClock()->Await(&mu_, absl::Condition(&is_ending_),
                               watch_.period)) {
        return;
      }
      stalled = FindStalled();
    }
    for (const auto& [lane, instruction] : stalled) {
      watch_.on_stalled(lane, instruction);
    }
  }
}

std::vector<std::pair<int, size_t>> Lanes::FindStalled() {
  std::vector<std::pair<int, size_t>> stalled;
  for (size_t lane = 0; lane < next_.size(); ++lane) {
    const bool stands = run_ != 0 && run_ == seen_run_ &&
                        next_[lane] == seen_[lane] && !is_waiting_[lane] &&
                        next_[lane] < schedule_.waits.size();
    if (stands) stalled.emplace_back(static_cast<int>(lane), next_[lane]);
  }
  seen_ = next_;
  seen_run_ = run_;
  return stalled;
}

void Lanes::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (error_.ok()) error_ = status;
}

}  // namespace muster
