#ifndef WORKER_HOOK_TENSOR_LOG_H_
#define WORKER_HOOK_TENSOR_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/config/name_pattern.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/hook.h"

namespace muster {

// The hook that says every so many steps how the parameters and their gradients
// look, one line a tensor:
//
//   tensor conv1/weights [32,1,5,5] step=100 min=-0.2 max=0.31 mean=-0.0021
//   norm=1.9 gradient_min=... gradient_norm=0.04           (all in one line)
//
// norm is the Euclidean one.
class TensorLog : public Hook {
 public:
  // Errors: InvalidArgument for a pattern that is none.
  static absl::StatusOr<std::unique_ptr<TensorLog>> Create(
      const LogTensorsSpec& spec, Reporter reporter);

  absl::StatusOr<PushDecision> BeforePush(const StepRecord& step) override;

 private:
  // `pattern`: null for all names.
  TensorLog(int64_t every_steps, std::unique_ptr<NamePattern> pattern,
            Reporter reporter);

  const int64_t every_steps_;
  const std::unique_ptr<NamePattern> pattern_;
  const Reporter reporter_;
};

// Errors: InvalidArgument if the pattern of `spec` matches none of `tensors`,
// or is none.
absl::Status CheckTensorLog(const LogTensorsSpec& spec,
                            absl::Span<const TensorDef> tensors);

}  // namespace muster

#endif  // WORKER_HOOK_TENSOR_LOG_H_
