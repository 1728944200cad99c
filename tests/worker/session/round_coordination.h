#ifndef TESTS_WORKER_SESSION_ROUND_COORDINATION_H_
#define TESTS_WORKER_SESSION_ROUND_COORDINATION_H_

#include <functional>
#include <utility>

#include "tests/worker/session/fake_coordination.h"

namespace muster {

// The coordinator of a synchronous job, which holds its rounds when asked to.
// For one thread.
class RoundCoordination : public FakeCoordination {
 public:
  // The job is at global step `round` - 1.
  explicit RoundCoordination(int64_t round)
      : FakeCoordination(/*steps=*/0), round_(round) {
    calls_.Handle(kPauseRoundsCall,
                  [this](const PauseRoundsRequest& request, absl::Time,
                         const auto& done) { PauseRounds(request, done); });
  }

  void set_round(int64_t round) { round_ = round; }

  absl::Status failure;
  // A wrong coordinator's addition to the state's step.
  int64_t state_ahead = 0;
  // Called when a hold is answered.
  std::function<void()> after_hold = [] {};

  bool held = false;
  int holds = 0;
  int releases = 0;
  PauseRoundsRequest last;

 private:
  void PauseRounds(const PauseRoundsRequest& request,
                   const ReplyCallback<PauseRoundsReply>& done) {
    held = request.pause();
    ++(request.pause() ? holds : releases);
    last = request;
    PauseRoundsReply reply;
    reply.mutable_token()->set_round(round_);
    reply.mutable_state()->set_global_step(round_ - 1 + state_ahead);
    *reply.mutable_ledger() = ledger;
    if (!failure.ok()) return done(failure);
    done(reply);
    if (request.pause()) after_hold();
  }

  int64_t round_;
};

}  // namespace muster

#endif  // TESTS_WORKER_SESSION_ROUND_COORDINATION_H_
