#include "worker/hook/tensor_log.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/readable_number.h"
#include "common/base/status_macros.h"
#include "worker/hook/hook_registry.h"
#include "worker/tower/sum_of_squares.h"

namespace muster {
namespace {

constexpr char kField[] = "log_tensors.pattern";

// "min=... max=... mean=... norm=...", each name after `prefix`.
std::string Describe(absl::string_view prefix, absl::Span<const float> values) {
  if (values.empty()) return absl::StrCat(prefix, "elements=0");
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  double sum = 0;
  for (const float value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  const double norm = std::sqrt(SumOfSquares(values));
  return absl::StrCat(prefix, "min=", ReadableNumber(*min, 4), " ", prefix,
                      "max=", ReadableNumber(*max, 4), " ", prefix,
                      "mean=", ReadableNumber(mean, 4), " ", prefix,
                      "norm=", ReadableNumber(norm, 4));
}

absl::StatusOr<std::unique_ptr<Hook>> Make(const HookParts& parts) {
  const LogTensorsSpec& spec = parts.training.log_tensors();
  if (!parts.chief || spec.every_steps() <= 0) return nullptr;
  return TensorLog::Create(spec, parts.reporter);
}

[[maybe_unused]] const bool kRegistered =
    HookRegistry::Register("tensor_log", &Make);

}  // namespace

absl::StatusOr<std::unique_ptr<TensorLog>> TensorLog::Create(
    const LogTensorsSpec& spec, Reporter reporter) {
  std::unique_ptr<NamePattern> pattern;
  if (!spec.pattern().empty()) {
    ASSIGN_OR_RETURN(pattern, NamePattern::Create(kField, spec.pattern()));
  }
  return absl::WrapUnique(new TensorLog(spec.every_steps(), std::move(pattern),
                                        std::move(reporter)));
}

TensorLog::TensorLog(int64_t every_steps, std::unique_ptr<NamePattern> pattern,
                     Reporter reporter)
    : every_steps_(every_steps),
      pattern_(std::move(pattern)),
      reporter_(std::move(reporter)) {}

absl::StatusOr<PushDecision> TensorLog::BeforePush(const StepRecord& step) {
  if (every_steps_ <= 0 || step.step % every_steps_ != 0) {
    return PushDecision::kPush;
  }
  RETURN_IF_ERROR(step.FetchTensors());
  for (const StepTensor& tensor : step.tensors) {
    if (pattern_ != nullptr && !pattern_->MatchesWhole(tensor.name)) continue;
    reporter_.Info(absl::StrCat(
        "tensor ", tensor.name, " [", absl::StrJoin(tensor.shape, ","),
        "] step=", step.step, " ", Describe("", tensor.value), " ",
        Describe("gradient_", tensor.gradient)));
  }
  return PushDecision::kPush;
}

absl::Status CheckTensorLog(const LogTensorsSpec& spec,
                            absl::Span<const TensorDef> tensors) {
  if (spec.pattern().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<NamePattern> pattern,
                   NamePattern::Create(kField, spec.pattern()));
  std::vector<std::string> names;
  for (const TensorDef& tensor : tensors) names.push_back(tensor.name());
  return pattern->CheckMatches(kField, names);
}

}  // namespace muster
