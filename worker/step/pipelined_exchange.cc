#include "worker/step/pipelined_exchange.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/tower/gradient_memory.h"

namespace muster {

PipelinedExchange::PipelinedExchange(const Options& options,
                                     std::unique_ptr<StepParameters> parameters)
    : PsExchange(options, std::move(parameters)),
      gradients_(options.gradients),
      copies_(PlaceLike(gradients_, &memory_)) {
  PushFrom(copies_);
}

absl::StatusOr<ParameterGate*> PipelinedExchange::Prepare(
    absl::Span<const SeededBatch> batches, const StepToken& token) {
  // Else Send has begun with the values at hand.
  if (!is_pushing()) return PsExchange::Prepare(batches, token);
  return &parameters();
}

absl::Status PipelinedExchange::Send() {
  for (size_t i = 0; i < copies_.size(); ++i) {
    std::copy(gradients_[i].begin(), gradients_[i].end(), copies_[i].begin());
  }
  RETURN_IF_ERROR(BeginPush());
  // The values that the push before has brought go out of the way of those that
  // this one brings.
  parameters().BeginWithThoseAtHand();
  return PsExchange::Send();
}

}  // namespace muster
