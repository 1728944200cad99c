#include "ps_server/strand.h"

#include <utility>

namespace muster {

bool Strand::Post(Task task) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return false;
    if (!Append(std::move(task))) return true;
  }
  Run();
  return true;
}

bool Strand::Append(Task task) {
  tasks_.push_back(std::move(task));
  const std::thread::id self = std::this_thread::get_id();
  if (running_) {
    // A task that posts would wait for itself.
    if (successor_ != Successor::kWanted || runner_ == self) return false;
    successor_ = Successor::kWaiting;
    mu_.Await(absl::Condition(this, &Strand::MayGo));
    successor_ = Successor::kNone;
  }
  running_ = true;
  runner_ = self;
  return true;
}

void Strand::Run() {
  const absl::Time begun = clock_.Now();
  for (;;) {
    // Freed before the next one runs: it may hold much.
    Task task;
    {
      absl::MutexLock lock(&mu_);
      task = Next(begun);
    }
    if (task == nullptr) return;
    task();
  }
}

Strand::Task Strand::Next(absl::Time begun) {
  if (successor_ == Successor::kWaiting) {
    successor_ = Successor::kGo;
    return nullptr;
  }
  if (tasks_.empty()) {
    running_ = false;
    successor_ = Successor::kNone;
    return nullptr;
  }
  if (clock_.Now() - begun >= kTurn) successor_ = Successor::kWanted;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void Strand::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  mu_.Await(absl::Condition(this, &Strand::IsIdle));
}

}  // namespace muster
