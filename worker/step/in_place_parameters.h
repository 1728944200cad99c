#ifndef WORKER_STEP_IN_PLACE_PARAMETERS_H_
#define WORKER_STEP_IN_PLACE_PARAMETERS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"
#include "worker/step/step_parameters.h"
#include "worker/tower/tower_group.h"

namespace muster {

// Parameters that the towers read where the shards keep them
// (ParametersInPlace), if that can be done: it is found out at the first step,
// and again after Drop. Then only versions are pulled and brought, and by
// round a step waits for each parameter as in StepParameters, though nothing
// is copied; else all is as there.
class InPlaceParameters : public StepParameters {
 public:
  // `towers` outlives this; `reporter` gets a line if it cannot be done, and
  // why.
  InPlaceParameters(Options options, InPlaceOrder order, TowerGroup* towers,
                    Reporter reporter);

  void Drop() override;

 private:
  bool is_in_place() const override { return in_place_.has_value(); }
  // Errors besides: those that may be others with the next attempt.
  absl::StatusOr<std::shared_ptr<const PulledVersions>> FindVersions() override;
  absl::Status ChoosePlace();

  const InPlaceOrder order_;
  TowerGroup* const towers_;
  const Reporter reporter_;
  // The memory that the towers read; none if they read the worker's own.
  std::optional<ParametersInPlace> in_place_;
  bool has_chosen_ = false;
  // The reason that was told last.
  std::string said_;
};

}  // namespace muster

#endif  // WORKER_STEP_IN_PLACE_PARAMETERS_H_
