#include "ps_server/service/strand.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace muster {
namespace {

// However long the state machine thinks that it may be left alone.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

thread_local const Strand::YieldHook* yield_hook = nullptr;

}  // namespace

Strand::YieldHook::YieldHook(const Strand* strand,
                             const std::function<void()>* hook)
    : strand_(strand), hook_(*hook) {
  assert(yield_hook == nullptr);
  yield_hook = this;
}

Strand::YieldHook::~YieldHook() { yield_hook = nullptr; }

Strand::Strand(const Clock* clock) : clock_(clock) {}

Strand::Strand(const Clock* clock, Idle idle)
    : clock_(clock),
      idle_(std::move(idle)),
      running_(true),
      thread_(clock->StartThread([this] { RunUntilClosed(); })) {}

Strand::~Strand() { Close(); }

bool Strand::Post(Task task) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    if (running_) return true;
    running_ = true;
  }
  while (RunNext()) {
  }
  return true;
}

bool Strand::RunNext() {
  // Freed before the next one runs: it may hold much.
  Task task;
  {
    absl::MutexLock lock(&mu_);
    if (tasks_.empty()) {
      running_ = false;
      return false;
    }
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  if (yield_hook != nullptr && yield_hook->strand_ == this) {
    yield_hook->hook_();
  }
  return true;
}

void Strand::RunUntilClosed() {
  absl::Duration wait = absl::ZeroDuration();
  for (;;) {
    size_t batch = 0;
    {
      absl::MutexLock lock(&mu_);
      clock_->Await(&mu_, absl::Condition(this, &Strand::HasNews), wait);
      if (closed_ && tasks_.empty()) {
        running_ = false;
        return;
      }
      batch = tasks_.size();
    }
    for (; batch > 0; --batch) RunNext();
    wait = std::clamp(idle_(), absl::ZeroDuration(), kLongestWait);
  }
}

void Strand::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  clock_->Await(&mu_, absl::Condition(this, &Strand::IsIdle),
                absl::InfiniteDuration());
}

}  // namespace muster
