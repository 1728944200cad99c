#ifndef WORKER_SESSION_REQUESTED_SAVES_H_
#define WORKER_SESSION_REQUESTED_SAVES_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "worker/session/session_core.h"
#include "worker/session/session_messages.h"
#include "worker/session/stepping.h"

namespace muster {

// The saves that a ps asks of the chief before it stops, and the report of
// each, which is repeated while it is lost. Not thread-safe.
class RequestedSaves {
 public:
  // `core` and `stepping` outlive it.
  RequestedSaves(SessionCore& core, const Stepping& stepping)
      : core_(core), stepping_(stepping) {}

  void OnRegistered() { seen_ = 0; }
  void On(const SaveReportLostEvent& event);
  // A ps that is about to stop waits for this chief's save.
  bool WantsSave() const;
  void Advance();
  absl::Time next_wakeup() const {
    return SoonestAfter(core_.now(), {report_at_});
  }

 private:
  void AskToSave();

  SessionCore& core_;
  const Stepping& stepping_;

  int64_t seen_ = 0;
  // A step that was granted before a save was asked for goes before it: it has
  // this number at most. -1: none is asked for.
  int64_t after_step_ = -1;
  // To be sent once more, at this time.
  std::optional<SendSaveReport> report_;
  absl::Time report_at_ = absl::InfiniteFuture();
};

}  // namespace muster

#endif  // WORKER_SESSION_REQUESTED_SAVES_H_
