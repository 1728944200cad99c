#include "ps_server/shard/shard_epoch.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/shard/request_name.h"

namespace muster {

absl::Status ShardEpoch::CheckFence(const Sender& sender,
                                    const Fence& fence) const {
  if (fence.model_epoch() == number_ && phase_ != EMPTY) {
    return absl::OkStatus();
  }
  return FencedError(absl::StrCat(
      RequestName("request", sender, ps_index_), ": it means model epoch ",
      fence.model_epoch(), ", the shard is ", ShardPhase_Name(phase_),
      " at epoch ", number_));
}

absl::Status ShardEpoch::CheckPhase(const Sender& sender, const Fence& fence,
                                    ShardPhase phase) const {
  RETURN_IF_ERROR(CheckFence(sender, fence));
  if (phase_ == phase) return absl::OkStatus();
  return FencedError(absl::StrCat(
      RequestName("request", sender, ps_index_), ": the shard is ",
      ShardPhase_Name(phase_), ", the request needs ", ShardPhase_Name(phase)));
}

absl::Status ShardEpoch::CheckReady(absl::string_view what,
                                    int64_t number) const {
  if (phase_ == READY && number == number_) return absl::OkStatus();
  return FencedError(absl::StrCat(what, ": wanted model epoch ", number,
                                  ", the shard is ", ShardPhase_Name(phase_),
                                  " at epoch ", number_));
}

absl::Status ShardEpoch::CheckNew(absl::string_view what,
                                  int64_t number) const {
  if (number < number_ || (number == number_ && phase_ != LOADING)) {
    return FencedError(absl::StrCat(what, ": model epoch ", number,
                                    "; the shard is ", ShardPhase_Name(phase_),
                                    " at epoch ", number_,
                                    ", a new load needs a larger one"));
  }
  if (!IsCount(number)) {  // the next one would not be larger
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": model epoch ", number, " is above ", kMaxCount));
  }
  // A shard that was started anew may come to a job that was restored often.
  if (number_ != 0 && number - number_ > kMaxEpochJump) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": model epoch ", number,
                     " is no count of restores: the shard is at ", number_));
  }
  return absl::OkStatus();
}

}  // namespace muster
