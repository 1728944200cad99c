#include "worker/metric/metric_set.h"

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<Metric>> CreateMetric(const MetricSpec& spec,
                                                     const MetricModel& model) {
  ASSIGN_OR_RETURN(const MetricType type, MetricRegistry::Find(spec.type()));
  ASSIGN_OR_RETURN(const Attributes attributes,
                   Attributes::Create(type.attributes, spec.attr()));
  return type.create(attributes, model);
}

std::vector<MetricSpec> SpecsOf(const EvaluationSpec& spec,
                                const MetricModel& model) {
  std::vector<MetricSpec> specs(spec.metric().begin(), spec.metric().end());
  if (!specs.empty()) return specs;
  for (const std::string& type : model.loss.metrics) {
    specs.emplace_back().set_type(type);
  }
  return specs;
}

}  // namespace

absl::StatusOr<MetricSet> MetricSet::Create(const EvaluationSpec& spec,
                                            const MetricModel& model) {
  MetricSet metrics;
  std::set<std::string> texts;
  for (const MetricSpec& metric : SpecsOf(spec, model)) {
    absl::StatusOr<std::unique_ptr<Metric>> made = CreateMetric(metric, model);
    if (!made.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluation.metric '", metric.type(),
                       "': ", made.status().message()));
    }
    if (!texts.insert(metric.ShortDebugString()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "evaluation.metric '", metric.type(), "' is there twice"));
    }
    metrics.metrics_.push_back(*std::move(made));
  }
  return metrics;
}

std::vector<FigureDef> MetricSet::Figures() const {
  std::vector<FigureDef> figures;
  for (const auto& metric : metrics_) {
    for (FigureDef& figure : metric->Figures()) {
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

MetricResult MetricSet::Finish() const {
  MetricResult result;
  for (const auto& metric : metrics_) metric->Finish(&result);
  return result;
}

}  // namespace muster
