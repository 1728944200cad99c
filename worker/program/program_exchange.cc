#include "worker/program/program_exchange.h"

#include <utility>

#include "worker/step/step_parameters.h"

namespace muster {

std::unique_ptr<PsExchange> MakeProgramExchange(
    ParameterClient* client, const ReplicationSpec& replication,
    std::vector<absl::Span<float>> values, const Clock* clock) {
  StepParameters::Options parameters;
  parameters.client = client;
  parameters.clock = clock;
  parameters.values = std::move(values);
  PsExchange::Options options;
  options.client = client;
  options.bounded = replication.has_bounded_staleness();
  // A round's values have to wait for the others.
  options.brings_values = !replication.has_sync();
  return std::make_unique<PsExchange>(
      std::move(options),
      std::make_unique<StepParameters>(std::move(parameters)));
}

}  // namespace muster
