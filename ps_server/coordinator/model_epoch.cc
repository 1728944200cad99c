#include "ps_server/coordinator/model_epoch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ps_server/caller/count_range.h"

namespace muster {
namespace {

std::map<int32_t, uint64_t> PsIncarnationsOf(
    const CommitEpochRequest& request) {
  return {request.ps_incarnations().begin(), request.ps_incarnations().end()};
}

}  // namespace

absl::Status ModelEpoch::CheckSeen(int64_t seen) const {
  // An epoch that is far ahead may be one message's doing, and would stay for
  // good: it goes into the manifests.
  const int64_t known = std::max(announced_, committed_);
  if (!IsCount(seen) || seen > known + 2 * kMaxEpochJump) {
    return absl::InvalidArgumentError(
        absl::StrCat("begin epoch: seen epoch ", seen,
                     " is no count of restores: ps task 0 knows ", known,
                     "; start the ps tasks anew that hold such a model"));
  }
  // A repeat that was long on the way must not throw the epoch away that its
  // sender has committed since.
  if (seen >= committed_) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "begin epoch: it has seen epoch ", seen, ", the committed one is ",
      committed_, "; look at the job's state first"));
}

absl::Status ModelEpoch::CheckCommitted(absl::string_view request,
                                        int64_t epoch) const {
  if (committed_ != 0 && epoch == committed_) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(request, " of model epoch ", epoch,
                                         ": the committed one is ", committed_,
                                         "; watch and pull anew"));
}

void ModelEpoch::Begin(int64_t seen) {
  announced_ = 1 + std::max({seen, announced_, committed_, int64_t{0}});
  committed_ = 0;
  fingerprint_ = 0;
  ps_incarnations_.clear();
}

void ModelEpoch::Commit(const CommitEpochRequest& request) {
  committed_ = request.model_epoch();
  fingerprint_ = request.fingerprint();
  ps_incarnations_ = PsIncarnationsOf(request);
}

bool ModelEpoch::IsRepeat(const CommitEpochRequest& request) const {
  return request.model_epoch() > 0 && request.model_epoch() == committed_ &&
         request.fingerprint() == fingerprint_ &&
         PsIncarnationsOf(request) == ps_incarnations_;
}

bool ModelEpoch::IsCurrent(int64_t model_epoch, uint64_t ps_incarnation) const {
  const auto first = ps_incarnations_.find(0);
  return model_epoch == committed_ &&
         ps_incarnation ==
             (first == ps_incarnations_.end() ? 0 : first->second);
}

bool ModelEpoch::IsHeldBy(const Sender& ps) const {
  const auto it = ps_incarnations_.find(ps.task().index());
  return it != ps_incarnations_.end() && it->second == ps.incarnation();
}

}  // namespace muster
