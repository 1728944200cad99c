#include "ps_server/shard/async_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

absl::Status NoRounds(absl::string_view what, int64_t round,
                      absl::string_view mode) {
  if (round == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": it is of round ",
                                                 round, "; the replication is ",
                                                 mode, ", which has none"));
}

}  // namespace

absl::StatusOr<PartFate> AsyncPolicy::CheckPart(
    absl::string_view what, const PushedPart& part,
    const TensorTable& /*tensors*/) const {
  const absl::Status status = NoRounds(what, part.round, name_);
  if (!status.ok()) return status;
  return PartFate::kAccepted;
}

bool AsyncPolicy::OnPart(PushedPart part, const TensorTable& /*tensors*/,
                         PartApplier& applier) {
  if (scales_learning_rate_) {
    part.rate_factor /=
        static_cast<double>(std::max<int64_t>(1, part.staleness));
  }
  const bool is_published = applier.Apply(part);
  if (part.begins_step) applier.CountUpdate();
  return is_published;
}

absl::Status AsyncPolicy::OnToken(absl::string_view what,
                                  const StepToken& token,
                                  const TensorTable& /*tensors*/,
                                  PartApplier& /*applier*/) {
  return NoRounds(what, token.round(), name_);
}

absl::Status AsyncPolicy::OnCut(absl::string_view what, const StepToken& token,
                                const TensorTable& /*tensors*/,
                                PartApplier& /*applier*/) {
  return NoRounds(what, token.round(), name_);
}

}  // namespace muster
