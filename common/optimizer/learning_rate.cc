#include "common/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr double kPi = 3.14159265358979323846;

absl::Status CheckDecaySteps(const ScheduleSpec& spec) {
  if (spec.decay_steps() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule.decay_steps must be at least 1, found ", spec.decay_steps()));
}

// A field that has no effect is a misunderstanding: say so.
absl::Status CheckUnused(const ScheduleSpec& spec, absl::string_view field,
                         bool is_set) {
  if (!is_set) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule.", field, " is set, but the schedule '",
      spec.name().empty() ? "constant" : spec.name(), "' has no use for it"));
}

absl::Status CheckConstant(const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckUnused(spec, "decay_rate", spec.decay_rate() != 0));
  RETURN_IF_ERROR(CheckUnused(spec, "decay_steps", spec.decay_steps() != 0));
  RETURN_IF_ERROR(CheckUnused(spec, "staircase", spec.staircase()));
  return CheckUnused(spec, "alpha", spec.alpha() != 0);
}

absl::Status CheckExponential(const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckDecaySteps(spec));
  if (!(spec.decay_rate() > 0) || !std::isfinite(spec.decay_rate())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule.decay_rate must be > 0, found ", spec.decay_rate()));
  }
  return CheckUnused(spec, "alpha", spec.alpha() != 0);
}

absl::Status CheckCosine(const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckDecaySteps(spec));
  if (!(spec.alpha() >= 0 && spec.alpha() <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule.alpha must be from 0 to 1, found ", spec.alpha()));
  }
  RETURN_IF_ERROR(CheckUnused(spec, "decay_rate", spec.decay_rate() != 0));
  return CheckUnused(spec, "staircase", spec.staircase());
}

}  // namespace

LearningRate::LearningRate(double base, Kind kind, const ScheduleSpec& spec)
    : base_(base),
      kind_(kind),
      decay_rate_(spec.decay_rate()),
      decay_steps_(static_cast<double>(spec.decay_steps())),
      staircase_(spec.staircase()),
      alpha_(spec.alpha()) {}

absl::StatusOr<LearningRate> LearningRate::Create(double base,
                                                  const ScheduleSpec& spec) {
  if (spec.name().empty() || spec.name() == "constant") {
    RETURN_IF_ERROR(CheckConstant(spec));
    return LearningRate(base, Kind::kConstant, spec);
  }
  if (spec.name() == "exponential") {
    RETURN_IF_ERROR(CheckExponential(spec));
    return LearningRate(base, Kind::kExponential, spec);
  }
  if (spec.name() == "cosine") {
    RETURN_IF_ERROR(CheckCosine(spec));
    return LearningRate(base, Kind::kCosine, spec);
  }
  const std::vector<std::string> known = {"constant", "cosine", "exponential"};
  return absl::InvalidArgumentError(
      UnknownNameMessage("schedule", spec.name(), known));
}

double LearningRate::At(int64_t completed_updates) const {
  const double t = static_cast<double>(completed_updates);
  switch (kind_) {
    case Kind::kConstant:
      return base_;
    case Kind::kExponential: {
      const double exponent = t / decay_steps_;
      return base_ * std::pow(decay_rate_,
                              staircase_ ? std::floor(exponent) : exponent);
    }
    case Kind::kCosine: {
      const double done = std::min(t, decay_steps_) / decay_steps_;
      const double fraction = (1 + std::cos(kPi * done)) / 2;
      return base_ * (alpha_ + (1 - alpha_) * fraction);
    }
  }
  return base_;
}

}  // namespace muster
