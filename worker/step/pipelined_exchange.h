#ifndef WORKER_STEP_PIPELINED_EXCHANGE_H_
#define WORKER_STEP_PIPELINED_EXCHANGE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/step/ps_exchange.h"
#include "worker/step/step_parameters.h"

namespace muster {

// A PsExchange whose push hides behind the next step's passes: that step is
// computed from what the push before has brought, or else from the same values
// again. Gradients are pushed from a copy, since the next step writes them
// meanwhile.
class PipelinedExchange : public PsExchange {
 public:
  // REQUIRES: options.brings_values, not options.early; parameters that come
  // `ahead`.
  PipelinedExchange(const Options& options,
                    std::unique_ptr<StepParameters> parameters);

  Capabilities capabilities() const override {
    return {/*wants_batches=*/false, /*computes_ahead=*/true};
  }
  absl::StatusOr<ParameterGate*> Prepare(absl::Span<const SeededBatch> batches,
                                         const StepToken& token) override;
  absl::Status Send() override;

 private:
  const std::vector<absl::Span<float>> gradients_;
  AlignedBuffer memory_;
  const std::vector<absl::Span<float>> copies_;
};

}  // namespace muster

#endif  // WORKER_STEP_PIPELINED_EXCHANGE_H_
