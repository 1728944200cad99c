#include "ps_server/strand.h"

#include <utility>

namespace muster {

bool Strand::Post(Task task) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    if (running_) return true;
    running_ = true;
  }
  Run();
  return true;
}

void Strand::Run() {
  for (;;) {
    // Freed before the next one runs: it may hold much.
    Task task;
    {
      absl::MutexLock lock(&mu_);
      if (tasks_.empty()) {
        running_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void Strand::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  mu_.Await(absl::Condition(this, &Strand::IsIdle));
}

}  // namespace muster
