#ifndef WORKER_SESSION_CONNECTING_H_
#define WORKER_SESSION_CONNECTING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/session_core.h"
#include "worker/session/session_messages.h"

namespace muster {

// The state in which a session looks for its peers: Hello to every ps task,
// Register and Watch at ps task 0. It asks ps task 0 for leave to replace
// another start of this task, and whether the job is over while others are
// missing. Not thread-safe.
class Connecting {
 public:
  // `core` outlives it.
  explicit Connecting(SessionCore& core) : core_(core) {}

  void On(const HelloEvent& event);
  // True if this task is registered now, as it was not before.
  bool On(const RegisterEvent& event);
  void On(const WatchEvent& event);

  // Hello to all, Register, Watch. False while one of the first two is missing.
  bool Advance();
  // A ps task 0 that is new is told who finishes.
  void RegisterToFinish();
  absl::Time next_wakeup() const {
    return SoonestAfter(core_.now(), {ask_at_});
  }

 private:
  bool OnRegistered(const RegisterReply& reply);
  void OnRegisteredToFinish(const absl::Status& status);
  void OnAsked(const absl::StatusOr<RegisterReply>& reply);
  bool MayTakeOver();
  void WaitForPs();
  void AskForEnd();
  void Ask();
  bool WantsToGoOn(const JobState& state) const;

  SessionCore& core_;

  // A Register, or such a question, is under way.
  bool register_in_flight_ = false;
  bool is_asking_ = false;
  // As RegisterRequest.takeover.
  uint64_t register_takeover_ = 0;
  bool may_take_over_ = false;
  // When ps task 0 is asked whether the job is over, though others are missing.
  absl::Time ask_at_ = absl::InfiniteFuture();
  // It has been a member; its registering makes a job that is DONE go on.
  bool was_member_ = false;
  bool goes_on_ = false;
  bool watching_ = false;
};

}  // namespace muster

#endif  // WORKER_SESSION_CONNECTING_H_
