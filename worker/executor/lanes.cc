#include "worker/executor/lanes.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"

namespace muster {

Lanes::Lanes(LaneSchedule schedule, std::vector<size_t> told, Execute execute,
             LaneWatch watch)
    : schedule_(std::move(schedule)),
      told_(std::move(told)),
      execute_(std::move(execute)),
      watch_(std::move(watch)),
      seen_(schedule_.lanes.size(), 0),
      stalled_(schedule_.lanes.size(), false),
      next_(schedule_.lanes.size(), 0),
      is_waiting_(schedule_.lanes.size(), false) {
  for (size_t lane = 0; lane < schedule_.lanes.size(); ++lane) {
    threads_.push_back(std::make_unique<RepeatingThread>(
        [this, lane] { RunLane(static_cast<int>(lane)); }));
  }
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
    for (size_t lane = 0; lane < next_.size(); ++lane) {
      next_[lane] = Next(static_cast<int>(lane), 0);
    }
  }
  for (const auto& thread : threads_) thread->Start();
  for (const size_t instruction : told_) {
    if (!AwaitAndWatch({*this, instruction})) break;
    const absl::Status status = tell(instruction);
    if (!status.ok()) Fail(status);
  }
  AwaitAndWatch({*this, schedule_.waits.size() - 1});
  for (const auto& thread : threads_) thread->Wait();
  absl::MutexLock lock(&mu_);
  return error_;
}

void Lanes::RunLane(int lane) {
  const std::vector<size_t>& instructions = schedule_.lanes[lane];
  for (size_t i = 0; i < instructions.size(); ++i) {
    const size_t instruction = instructions[i];
    for (const LaneSchedule::Event& event : schedule_.waits[instruction]) {
      if (!Await({*this, event.instruction, event.lane}, lane)) return;
    }
    const absl::Status status = execute_(instruction);
    if (!status.ok()) return Fail(status);
    absl::MutexLock lock(&mu_);
    if (!error_.ok()) return;
    next_[lane] = Next(lane, i + 1);
  }
}

bool Lanes::Await(const Wanted& wanted, int lane) {
  absl::MutexLock lock(&mu_);
  is_waiting_[lane] = true;
  mu_.Await(absl::Condition(&wanted, &Wanted::IsOver));
  is_waiting_[lane] = false;
  return error_.ok();
}

bool Lanes::AwaitAndWatch(const Wanted& wanted) {
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      seen_ = next_;
      if (SystemClock()->Await(&mu_, absl::Condition(&wanted, &Wanted::IsOver),
                               watch_.period)) {
        return error_.ok();
      }
      for (size_t lane = 0; lane < stalled_.size(); ++lane) {
        stalled_[lane] = IsStalled(static_cast<int>(lane));
      }
    }
    for (size_t lane = 0; lane < stalled_.size(); ++lane) {
      if (!stalled_[lane]) continue;
      watch_.on_stalled(static_cast<int>(lane), seen_[lane]);
    }
  }
}

void Lanes::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (error_.ok()) error_ = status;
}

}  // namespace muster
