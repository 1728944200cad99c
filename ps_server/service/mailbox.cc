#include "ps_server/service/mailbox.h"

#include <algorithm>
#include <utility>

#include "common/base/monotonic_wait.h"

namespace muster {
namespace {

// However long the state machine thinks that it may be left alone.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

}  // namespace

Mailbox::Mailbox(Idle idle) : idle_(std::move(idle)) {
  absl::MutexLock lock(&join_mu_);
  thread_ = std::thread([this] { Run(); });
}

Mailbox::~Mailbox() { Close(); }

bool Mailbox::Post(Task task) {
  absl::MutexLock lock(&mu_);
  if (closed_) return false;
  tasks_.push_back(std::move(task));
  return true;
}

void Mailbox::Close() {
  absl::MutexLock join_lock(&join_mu_);
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Mailbox::Run() {
  absl::Duration wait = absl::ZeroDuration();
  for (;;) {
    std::deque<Task> batch;
    {
      absl::MutexLock lock(&mu_);
      AwaitMonotonic(&mu_, absl::Condition(this, &Mailbox::HasNews), wait);
      if (closed_ && tasks_.empty()) return;
      batch.swap(tasks_);
    }
    for (Task& task : batch) {
      task();
      task = nullptr;  // frees what it holds before the next one runs
    }
    wait = idle_ ? idle_() : absl::InfiniteDuration();
    if (idle_) wait = std::clamp(wait, absl::ZeroDuration(), kLongestWait);
  }
}

}  // namespace muster
