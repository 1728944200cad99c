#include "common/base/thread_team.h"

namespace muster {

ThreadTeam::ThreadTeam(int threads) {
  for (int i = 1; i < threads; ++i) {
    threads_.emplace_back([this] { ServeCaller(); });
  }
}

ThreadTeam::~ThreadTeam() {
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Run(int count, absl::FunctionRef<void(int)> body) {
  {
    absl::MutexLock lock(&mu_);
    body_ = &body;
    next_ = 0;
    count_ = unfinished_ = count;
  }
  Work();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &ThreadTeam::IsDone));
}

void ThreadTeam::ServeCaller() {
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &ThreadTeam::HasNews));
      if (closed_) return;
    }
    Work();
  }
}

void ThreadTeam::Work() {
  absl::MutexLock lock(&mu_);
  while (HasWork()) {
    const int i = next_++;
    const Body* const body = body_;
    mu_.Unlock();
    (*body)(i);
    mu_.Lock();
    --unfinished_;
  }
}

}  // namespace muster
