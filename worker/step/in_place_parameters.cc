#include "worker/step/in_place_parameters.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "worker/client/client_model.h"

namespace muster {

InPlaceParameters::InPlaceParameters(Options options, InPlaceOrder order,
                                     TowerGroup* towers, Reporter reporter)
    : StepParameters(std::move(options)),
      order_(order),
      towers_(towers),
      reporter_(std::move(reporter)) {}

void InPlaceParameters::Drop() {
  StepParameters::Drop();
  has_chosen_ = false;
}

absl::StatusOr<std::shared_ptr<const PulledVersions>>
InPlaceParameters::FindVersions() {
  if (!has_chosen_) RETURN_IF_ERROR(ChoosePlace());
  if (!in_place_.has_value() || order_ == InPlaceOrder::kByRound) {
    return nullptr;
  }
  return client()->PullVersions();
}

absl::Status InPlaceParameters::ChoosePlace() {
  absl::StatusOr<ParametersInPlace> mapped = client()->MapParameters(order_);
  // It may be otherwise when the session has found out what happened; but who
  // finds no memory to map pulls instead.
  if (IsTransient(mapped.status()) &&
      !absl::IsResourceExhausted(mapped.status())) {
    return mapped.status();
  }
  std::vector<const float*> places;
  if (mapped.ok()) {
    for (const TensorView& view : mapped->values) {
      places.push_back(reinterpret_cast<const float*>(view.data));
    }
  } else if (const std::string why(mapped.status().message()); why != said_) {
    said_ = why;
    reporter_.Info(absl::StrCat(
        "pull: IN_PLACE is not possible, pulling consistently: ", why));
  }
  towers_->ReadParametersFrom(places);
  // Until now the towers may have read from the one before.
  in_place_.reset();
  if (mapped.ok()) in_place_ = *std::move(mapped);
  has_chosen_ = true;
  return absl::OkStatus();
}

}  // namespace muster
