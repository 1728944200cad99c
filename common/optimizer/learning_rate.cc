#include "common/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster {
namespace {

constexpr double kPi = 3.14159265358979323846;
// Update rules narrow the rate to float.
constexpr double kMaxRate = std::numeric_limits<float>::max();

absl::Status BadField(absl::string_view field, absl::string_view wanted,
                      double found) {
  return absl::InvalidArgumentError(
      absl::StrCat("schedule.", field, " must be ", wanted, ", found ", found));
}

absl::Status CheckDecaySteps(const ScheduleSpec& spec) {
  if (spec.decay_steps() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule.decay_steps must be at least 1, found ", spec.decay_steps()));
}

// From 0 to 1 over decay_steps updates, then 1.
double Done(const ScheduleSpec& spec, int64_t t) {
  return static_cast<double>(std::min(t, spec.decay_steps())) /
         static_cast<double>(spec.decay_steps());
}

absl::Status CheckConstant(double /*base*/, const ScheduleSpec& /*spec*/) {
  return absl::OkStatus();
}

double ConstantAt(double base, const ScheduleSpec& /*spec*/, int64_t /*t*/) {
  return base;
}

absl::Status CheckExponential(double /*base*/, const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckDecaySteps(spec));
  if (spec.decay_rate() > 0 && std::isfinite(spec.decay_rate())) {
    return absl::OkStatus();
  }
  return BadField("decay_rate", "> 0", spec.decay_rate());
}

double ExponentialAt(double base, const ScheduleSpec& spec, int64_t t) {
  const double exponent =
      static_cast<double>(t) / static_cast<double>(spec.decay_steps());
  return base * std::pow(spec.decay_rate(),
                         spec.staircase() ? std::floor(exponent) : exponent);
}

absl::Status CheckCosine(double /*base*/, const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckDecaySteps(spec));
  if (spec.alpha() >= 0 && spec.alpha() <= 1) return absl::OkStatus();
  return BadField("alpha", "from 0 to 1", spec.alpha());
}

double CosineAt(double base, const ScheduleSpec& spec, int64_t t) {
  const double fraction = (1 + std::cos(kPi * Done(spec, t))) / 2;
  return base * (spec.alpha() + (1 - spec.alpha()) * fraction);
}

absl::Status CheckBoundaries(const ScheduleSpec& spec) {
  int64_t least = 0;
  for (const int64_t boundary : spec.boundary()) {
    if (boundary < least || boundary == std::numeric_limits<int64_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule.boundary must be 0 or more and rise; found ",
                       boundary, " where at least ", least, " is due"));
    }
    least = boundary + 1;
  }
  return absl::OkStatus();
}

absl::Status CheckPiecewise(double base, const ScheduleSpec& spec) {
  if (spec.boundary().empty() ||
      spec.value_size() != spec.boundary_size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule 'piecewise' wants schedule.boundary and one schedule.value "
        "more than boundaries, found ",
        spec.boundary_size(), " and ", spec.value_size()));
  }
  RETURN_IF_ERROR(CheckBoundaries(spec));
  for (const double value : spec.value()) {
    if (value >= 0 && value <= kMaxRate) continue;
    return BadField("value", "0 or more and a float", value);
  }
  if (spec.value(0) == base) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the first schedule.value must be the learning rate, ", base, ", found ",
      spec.value(0), "; set both to the rate of the first updates"));
}

double PiecewiseAt(double /*base*/, const ScheduleSpec& spec, int64_t t) {
  const auto it =
      std::lower_bound(spec.boundary().begin(), spec.boundary().end(), t);
  return spec.value(static_cast<int>(it - spec.boundary().begin()));
}

absl::Status CheckPolynomial(double /*base*/, const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckDecaySteps(spec));
  if (!(spec.power() >= 0) || !std::isfinite(spec.power())) {
    return BadField("power", "> 0 (0 stands for 1)", spec.power());
  }
  if (spec.end_learning_rate() >= 0 && spec.end_learning_rate() <= kMaxRate) {
    return absl::OkStatus();
  }
  return BadField("end_learning_rate", "0 or more and a float",
                  spec.end_learning_rate());
}

// Not (lr - end) * left + end, of which the first value would not be lr.
double PolynomialAt(double base, const ScheduleSpec& spec, int64_t t) {
  const double power = spec.power() == 0 ? 1 : spec.power();
  const double left = std::pow(1 - Done(spec, t), power);
  return base * left + spec.end_learning_rate() * (1 - left);
}

// PyTorch's ReduceLROnPlateau divides by the same rules, but takes a factor of
// 0, which would end the training without a word.
absl::Status CheckOnPlateau(double /*base*/, const ScheduleSpec& spec) {
  if (spec.metric().empty()) {
    return absl::InvalidArgumentError(
        "schedule.metric is not set: the schedule 'on_plateau' wants the name "
        "of a figure of the evaluations, such as validation_loss");
  }
  if (!(spec.factor() > 0 && spec.factor() < 1)) {
    return BadField("factor", "more than 0 and less than 1", spec.factor());
  }
  if (spec.patience() < 1) {
    return BadField("patience", "1 or more", spec.patience());
  }
  if (spec.min_change() >= 0) return absl::OkStatus();
  return BadField("min_change", "0 or more", spec.min_change());
}

struct Kind {
  // Beside name and warmup_steps.
  std::vector<std::string> fields;
  absl::Status (*check)(double base, const ScheduleSpec& spec);
  double (*at)(double base, const ScheduleSpec& spec, int64_t t);
};

const std::map<std::string, Kind>& Kinds() {
  static const auto& kinds = *new std::map<std::string, Kind>{
      {"constant", {{}, &CheckConstant, &ConstantAt}},
      {"cosine", {{"decay_steps", "alpha"}, &CheckCosine, &CosineAt}},
      {"exponential",
       {{"decay_rate", "decay_steps", "staircase"},
        &CheckExponential,
        &ExponentialAt}},
      {"on_plateau",
       {{"factor", "metric", "patience", "min_change", "mode"},
        &CheckOnPlateau,
        &ConstantAt}},
      {"piecewise", {{"boundary", "value"}, &CheckPiecewise, &PiecewiseAt}},
      {"polynomial",
       {{"decay_steps", "power", "end_learning_rate"},
        &CheckPolynomial,
        &PolynomialAt}}};
  return kinds;
}

// A field that has no effect is a misunderstanding: say so.
absl::Status CheckAllUsed(const std::string& name, const Kind& kind,
                          const ScheduleSpec& spec) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  spec.GetReflection()->ListFields(spec, &set);
  for (const auto* field : set) {
    if (field->name() == "name" || field->name() == "warmup_steps") continue;
    if (std::count(kind.fields.begin(), kind.fields.end(), field->name()) > 0) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("schedule.", field->name(), " is set, but the schedule '",
                     name, "' has no use for it"));
  }
  return absl::OkStatus();
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : Kinds()) names.push_back(name);
  return names;
}

}  // namespace

std::string LearningRate::DescribeSchedules() {
  std::string text;
  for (const auto& [name, kind] : Kinds()) {
    absl::StrAppend(&text, name, ": ");
    for (const std::string& field : kind.fields) {
      absl::StrAppend(&text, field, ", ");
    }
    absl::StrAppend(&text, "warmup_steps\n");
  }
  return text;
}

absl::StatusOr<LearningRate> LearningRate::Create(double base,
                                                  const ScheduleSpec& spec) {
  const std::string name = spec.name().empty() ? "constant" : spec.name();
  const auto it = Kinds().find(name);
  if (it == Kinds().end()) {
    return absl::InvalidArgumentError(
        UnknownNameMessage("schedule", name, Names()));
  }
  if (!(base <= kMaxRate)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the learning rate must be at most ", kMaxRate, ", found ", base));
  }
  RETURN_IF_ERROR(CheckAllUsed(name, it->second, spec));
  RETURN_IF_ERROR(it->second.check(base, spec));
  if (spec.warmup_steps() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule.warmup_steps must be 0 or more, found ",
                     spec.warmup_steps()));
  }
  return LearningRate(base, spec, it->second.at);
}

double LearningRate::At(int64_t completed_updates) const {
  double rate = formula_(base_, spec_, completed_updates);
  if (completed_updates < spec_.warmup_steps()) {
    rate *= (static_cast<double>(completed_updates) + 1) /
            static_cast<double>(spec_.warmup_steps());
  }
  return std::min(rate, kMaxRate);
}

}  // namespace muster
