#include "worker/step/make_exchange.h"

#include <cstddef>
#include <utility>

#include "worker/step/device_exchange.h"
#include "worker/step/in_place_parameters.h"
#include "worker/step/pipelined_exchange.h"
#include "worker/step/ps_exchange.h"
#include "worker/step/step_parameters.h"
#include "worker/training/replication_settings.h"

namespace muster {
namespace {

bool IsPipelined(const ExchangeOptions& options) {
  return PipelineDepth(options.replication) > 1;
}

std::unique_ptr<StepParameters> MakeParameters(const ExchangeOptions& options) {
  StepParameters::Options parameters;
  parameters.client = options.client;
  parameters.clock = options.clock;
  parameters.ahead = IsPipelined(options);
  CompiledModel& model = options.towers->model();
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    parameters.values.push_back(model.parameter(static_cast<int>(i)));
    parameters.frozen.push_back(model.parameters()[i].kind() == FROZEN);
  }
  if (PullsInPlace(options.replication)) {
    return std::make_unique<InPlaceParameters>(
        std::move(parameters), InPlaceOrder::kNone, options.towers,
        options.reporter);
  }
  // Nobody has asked for it, nor misses it.
  if (options.replication.has_sync() && options.reads_rounds_in_place) {
    return std::make_unique<InPlaceParameters>(std::move(parameters),
                                               InPlaceOrder::kByRound,
                                               options.towers, Reporter());
  }
  return std::make_unique<StepParameters>(std::move(parameters));
}

PsExchange::Options PsOptions(const ExchangeOptions& options) {
  PsExchange::Options ps;
  ps.client = options.client;
  TowerGroup& towers = *options.towers;
  for (size_t i = 0; i < towers.model().parameters().size(); ++i) {
    ps.gradients.push_back(towers.gradient(static_cast<int>(i)));
  }
  // A mean over towers or batches comes after the backward pass. A pipelined
  // step hides its push behind the next one's passes.
  ps.early =
      options.may_push_early && towers.can_tell() && !IsPipelined(options);
  ps.allow_non_finite = options.allow_non_finite;
  ps.bounded = options.replication.has_bounded_staleness();
  // Where they would overwrite what hooks want to see, they are pulled.
  ps.brings_values = (options.replication.has_async() || ps.bounded) &&
                     !(ps.early && options.hooks_read_parameters);
  return ps;
}

}  // namespace

std::unique_ptr<StepExchange> MakeStepExchange(const ExchangeOptions& options) {
  if (options.update != nullptr) {
    return std::make_unique<DeviceExchange>(options.client, options.clock,
                                            options.update);
  }
  if (IsPipelined(options)) {
    return std::make_unique<PipelinedExchange>(PsOptions(options),
                                               MakeParameters(options));
  }
  return std::make_unique<PsExchange>(PsOptions(options),
                                      MakeParameters(options));
}

}  // namespace muster
