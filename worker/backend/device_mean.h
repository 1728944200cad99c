#ifndef WORKER_BACKEND_DEVICE_MEAN_H_
#define WORKER_BACKEND_DEVICE_MEAN_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// The mean of what several devices of one process have computed, made where it
// lies. Each device is a member, used by a thread of its own.
//
// A step: every member calls Join; where that is OK for one it is for all, and
// each calls Average for the same places in the same order. A member that fails
// behind Join calls Abort.
class DeviceMean {
 public:
  explicit DeviceMean(int num_members) : came_(num_members, false) {}
  virtual ~DeviceMean() = default;

  DeviceMean(const DeviceMean&) = delete;
  DeviceMean& operator=(const DeviceMean&) = delete;

  // Waits until every member has come. `status`: whether this one goes on.
  // Returns its own error, or Cancelled if another one does not go on.
  absl::Status Join(int member, const absl::Status& status);

  // Puts work into kToHost of the member's device: the `elements` floats at
  // `data` become the mean over all members. Errors: Internal.
  virtual absl::Status Average(int member, float* data, int64_t elements) = 0;

  // Nobody waits for another member any more, neither on a device: this and
  // every later step fails.
  virtual void Abort();

 protected:
  bool is_aborted() const;

 private:
  bool IsOver(int64_t round) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return round_ != round || aborted_;
  }

  mutable absl::Mutex mu_;
  // The members that have come to the round that is gathering.
  std::vector<bool> came_ ABSL_GUARDED_BY(mu_);
  size_t num_came_ ABSL_GUARDED_BY(mu_) = 0;
  bool all_go_on_ ABSL_GUARDED_BY(mu_) = true;
  // How the last round ended. No member begins the next but one before all
  // have seen it.
  bool last_goes_on_ ABSL_GUARDED_BY(mu_) = true;
  int64_t round_ ABSL_GUARDED_BY(mu_) = 0;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // WORKER_BACKEND_DEVICE_MEAN_H_
