#include "ps_server/service/strand.h"

#include <cassert>
#include <utility>

namespace muster {
namespace {

thread_local const Strand::Attendance* attendance = nullptr;

}  // namespace

Strand::Attendance::Attendance(const Strand* strand,
                               const std::function<void()>* attend)
    : strand_(strand), attend_(*attend) {
  assert(attendance == nullptr);
  attendance = this;
}

Strand::Attendance::~Attendance() { attendance = nullptr; }

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
    if (attendance != nullptr && attendance->strand_ == this) {
      attendance->attend_();
    }
  }
}

void Strand::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  mu_.Await(absl::Condition(this, &Strand::IsIdle));
}

}  // namespace muster
