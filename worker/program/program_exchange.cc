#include "worker/program/program_exchange.h"

#include <utility>

#include "worker/step/step_parameters.h"

namespace muster {

std::unique_ptr<PsExchange> MakeProgramExchange(
    ParameterClient* client, const TrainingSpec& training,
    std::vector<absl::Span<float>> values, const Clock* clock) {
  StepParameters::Options parameters;
  parameters.client = client;
  parameters.clock = clock;
  parameters.values = std::move(values);
  PsExchange::Options options;
  options.client = client;
  const ReplicationSpec& replication = training.replication();
  options.early = training.summary().histograms_every_steps() == 0;
  options.allow_non_finite = training.non_finite().allow();
  options.bounded = replication.has_bounded_staleness();
  // A round's values have to wait for the others.
  options.brings_values = !replication.has_sync();
  return std::make_unique<PsExchange>(
      std::move(options),
      std::make_unique<StepParameters>(std::move(parameters)));
}

}  // namespace muster
