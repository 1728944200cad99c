#ifndef PS_SERVER_COORDINATOR_MODEL_EPOCH_H_
#define PS_SERVER_COORDINATOR_MODEL_EPOCH_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The model epoch that is committed, if one is, and the one that was announced
// last. Not thread-safe.
class ModelEpoch {
 public:
  // Errors: InvalidArgument for an epoch too far ahead of what is known here,
  // Aborted for one before the committed epoch.
  absl::Status CheckSeen(int64_t seen) const;
  // Errors: Aborted unless `epoch` is the committed one.
  absl::Status CheckCommitted(absl::string_view request, int64_t epoch) const;

  // Announces one above all, `seen` included; none is committed.
  void Begin(int64_t seen);
  // Commits the announced one.
  void Commit(const CommitEpochRequest& request);
  // Is this the commit of the present epoch? Not that of another epoch of the
  // same number, when every ps had lost its memory before the first checkpoint.
  bool IsRepeat(const CommitEpochRequest& request) const;

  // Is it the committed one, with this start of ps task 0 (0: none)? Before a
  // commit: none, of none.
  bool IsCurrent(int64_t model_epoch, uint64_t ps_incarnation) const;
  // Does this start of a ps task hold the committed model?
  bool IsHeldBy(const Sender& ps) const;

  int64_t announced() const { return announced_; }
  // 0: none.
  int64_t committed() const { return committed_; }
  uint64_t fingerprint() const { return fingerprint_; }
  const std::map<int32_t, uint64_t>& ps_incarnations() const {
    return ps_incarnations_;
  }

 private:
  int64_t announced_ = 0;
  int64_t committed_ = 0;
  uint64_t fingerprint_ = 0;
  std::map<int32_t, uint64_t> ps_incarnations_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_MODEL_EPOCH_H_
