#include "common/base/clock.h"

#include <thread>
#include <utility>

#include "common/base/monotonic_wait.h"

namespace muster {
namespace {

class JoiningThread : public ClockThread {
 public:
  explicit JoiningThread(std::function<void()> body)
      : thread_(std::move(body)) {}
  ~JoiningThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace

bool Clock::Await(absl::Mutex* mu, const absl::Condition& condition,
                  absl::Duration timeout) const {
  return AwaitMonotonic(mu, condition, timeout);
}

std::unique_ptr<ClockThread> Clock::StartThread(
    std::function<void()> body) const {
  return std::make_unique<JoiningThread>(std::move(body));
}

absl::Time MonotonicClock::Now() const {
  return absl::UnixEpoch() + AwakeNow();
}

const Clock* SystemClock() {
  static const auto& clock = *new MonotonicClock();
  return &clock;
}

}  // namespace muster
