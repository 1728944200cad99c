#include "worker/session/state_watch.h"

#include <utility>

#include "common/rpc/call_table.h"

namespace muster {
namespace {

constexpr absl::Duration kLongestWatch = absl::Seconds(5);
// The time that the answer may take beyond that.
constexpr absl::Duration kGrace = absl::Seconds(5);

}  // namespace

struct StateWatch::Shared {
  // Constant after construction.
  Link* link;
  const Clock* clock;
  Sender sender;
  OnState on_state;

  absl::Mutex mu;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  // Threads inside link->Watch.
  int issuing ABSL_GUARDED_BY(mu) = 0;
};

StateWatch::StateWatch(Link* link, const Clock* clock, const Sender& sender,
                       OnState on_state)
    : shared_(std::make_shared<Shared>()) {
  shared_->link = link;
  shared_->clock = clock;
  shared_->sender = sender;
  shared_->on_state = std::move(on_state);
}

StateWatch::~StateWatch() {
  Shared* const shared = shared_.get();
  absl::MutexLock lock(&shared->mu);
  shared->stopped = true;
  const auto none = [shared]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared->mu) {
    return shared->issuing == 0;
  };
  shared->mu.Await(absl::Condition(&none));
}

void StateWatch::Start(int64_t state_version) { Issue(shared_, state_version); }

void StateWatch::Issue(const std::shared_ptr<Shared>& shared,
                       int64_t state_version) {
  {
    absl::MutexLock lock(&shared->mu);
    if (shared->stopped) return;
    ++shared->issuing;
  }
  WatchRequest request;
  *request.mutable_sender() = shared->sender;
  request.set_state_version(state_version);
  request.set_max_wait_ms(absl::ToInt64Milliseconds(kLongestWatch));
  shared->link->Call(
      kWatchCall, request, shared->clock->Now() + kLongestWatch + kGrace,
      [shared](absl::StatusOr<JobState> state) {
        {
          absl::MutexLock lock(&shared->mu);
          if (shared->stopped) return;
        }
        const bool goes_on = state.ok();
        const int64_t version = goes_on ? state->state_version() : 0;
        shared->on_state(std::move(state));
        if (goes_on) Issue(shared, version);
      });
  absl::MutexLock lock(&shared->mu);
  --shared->issuing;
}

}  // namespace muster
