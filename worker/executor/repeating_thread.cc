#include "worker/executor/repeating_thread.h"

#include <cassert>
#include <utility>

namespace muster {

RepeatingThread::RepeatingThread(std::function<void()> function)
    : function_(std::move(function)), thread_([this] { Loop(); }) {}

RepeatingThread::~RepeatingThread() {
  {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &RepeatingThread::IsIdle));
    state_ = State::kStop;
  }
  thread_.join();
}

void RepeatingThread::Start() {
  absl::MutexLock lock(&mu_);
  assert(state_ == State::kIdle);
  state_ = State::kRun;
}

void RepeatingThread::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &RepeatingThread::IsIdle));
}

void RepeatingThread::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &RepeatingThread::IsNotIdle));
      if (state_ == State::kStop) return;
    }
    function_();
    absl::MutexLock lock(&mu_);
    state_ = State::kIdle;
  }
}

}  // namespace muster
