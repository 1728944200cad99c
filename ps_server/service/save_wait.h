#ifndef PS_SERVER_SERVICE_SAVE_WAIT_H_
#define PS_SERVER_SERVICE_SAVE_WAIT_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The wait of a ps that was asked to stop, for the chief to save: told what ps
// task 0 answers, it decides whether to wait on. Not thread-safe; no clock, no
// RPC.
class SaveWait {
 public:
  enum class Verdict {
    kWait,
    // A whole checkpoint has every step that this ps acknowledged.
    kSaved,
    // The job is over; it was saved by its end.
    kJobDone,
    kNotSaved,
  };

  // Waits until `give_up` at the latest.
  explicit SaveWait(absl::Time give_up) : give_up_(give_up) {}

  Verdict OnReply(const RequestSaveReply& reply, absl::Time now);
  Verdict OnState(const JobState& state, absl::Time now);
  // After kSaved, the state once more: not kSaved if the model of that save was
  // loaded anew.
  Verdict Confirm(const JobState& state, absl::Time now);
  // A call to ps task 0 failed.
  Verdict OnFailure(const absl::Status& status);

  // Waits until `give_up`, if that is later.
  void Extend(absl::Time give_up) { give_up_ = std::max(give_up_, give_up); }

  absl::Time give_up() const { return give_up_; }
  // The cause of kNotSaved.
  const std::string& reason() const { return reason_; }

 private:
  Verdict GiveUp(std::string reason);

  absl::Time give_up_;
  int64_t save_request_ = 0;
  std::string reason_;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SAVE_WAIT_H_
