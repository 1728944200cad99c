#ifndef PS_SERVER_SHARD_DEVICE_RESIDENT_PARAMETERS_H_
#define PS_SERVER_SHARD_DEVICE_RESIDENT_PARAMETERS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/rpc/device_parameters.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"

namespace muster {

// The shard's side of a DeviceParameters: who holds its parameters, if anybody,
// and whether its own memory is behind. Not thread-safe.
class DeviceResidentParameters {
 public:
  // `holder` takes the values of `tensors`, which both outlive the hold.
  // Whoever held them before writes them back first. Errors: FailedPrecondition
  // naming a tensor that no rule updates, being no trainable one; those of the
  // holders. Nobody holds them then.
  absl::Status Hold(absl::string_view what, const Sender& sender,
                    DeviceParameters* holder, TensorTable* tensors);
  // The tensors get other values, or are no more.
  void End() { holder_ = nullptr; }

  // Their holder; null if nobody holds them.
  DeviceParameters* holder() const { return holder_; }

  // Whether values may be pushed, and whether `sender` may have everything
  // updated that is held. Errors: FailedPrecondition.
  absl::Status CheckPush(absl::string_view what) const;
  absl::Status CheckUpdate(absl::string_view what, const Sender& sender) const;
  // The slices of all tensors, which are what is held.
  const std::vector<CheckedSlice>& slices() const { return slices_; }
  // An update was made.
  void SetBehind() { is_behind_ = holder_ != nullptr; }

  // Makes the shard's memory current.
  absl::Status WriteBack();

 private:
  DeviceParameters* holder_ = nullptr;
  Sender sender_;
  std::vector<ResidentTensor> places_;
  std::vector<CheckedSlice> slices_;
  bool is_behind_ = false;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_DEVICE_RESIDENT_PARAMETERS_H_
