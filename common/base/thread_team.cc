#include "common/base/thread_team.h"

#include <chrono>

#include "common/base/spin_until.h"

namespace muster {
namespace {

// As long as the work of one thread between two Runs of a training step often
// is. With 20 us two threads make a tenth fewer steps of the MLP on a quiet
// machine, with 100 us no more.
constexpr std::chrono::microseconds kTeamSpin{50};

}  // namespace

ThreadTeam::ThreadTeam(int threads, Wait wait)
    : spins_(wait == Wait::kSpinningFirst) {
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
    count_ = count;
    unfinished_ = count;
    unbegun_ = count;
    ++runs_;
  }
  Work();
  if (spins_ && SpinUntil([this] { return IsDone(); }, kTeamSpin)) return;
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &ThreadTeam::IsDone));
}

void ThreadTeam::ServeCaller() {
  int64_t seen = 0;
  // Who wakes too late for one Run looks for the next one.
  const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || runs_ != seen;
  };
  for (;;) {
    if (spins_) SpinUntil([this] { return HasWork(); }, kTeamSpin);
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_news));
      if (closed_) return;
      seen = runs_;
    }
    Work();
  }
}

void ThreadTeam::Work() {
  absl::MutexLock lock(&mu_);
  while (HasWork()) {
    const int i = count_ - unbegun_--;
    const Body* const body = body_;
    mu_.Unlock();
    (*body)(i);
    mu_.Lock();
    --unfinished_;
  }
}

}  // namespace muster
