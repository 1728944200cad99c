#include "worker/task/describe_components.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/cluster/placement_strategy.h"
#include "common/codec/codec.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_rule.h"
#include "worker/layer/layer.h"
#include "worker/tower/device_names.h"

namespace muster {
namespace {

// Each line of `text`, moved in.
std::string Indent(absl::string_view text) {
  std::string indented;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&indented, "  ", line, "\n");
  }
  return indented;
}

std::string DescribeLayerTypes() {
  return absl::StrCat(DescribeLayers(),
                      "any of them that has parameters may have share: "
                      "\"conv1\" beside its attributes: it uses "
                      "the parameters of the layer conv1 instead of its own\n");
}

std::string DescribeOptimizers() {
  std::string text;
  for (const std::string& name : UpdateRuleNames()) {
    const auto attributes = UpdateRuleAttributes(name);
    absl::StrAppend(&text, name, "\n");
    if (attributes.ok()) {
      absl::StrAppend(&text, Indent(DescribeAttributes(*attributes)));
    }
  }
  return text;
}

std::string DescribePlacements() {
  std::string text;
  for (const std::string& name : PlacementRegistry::Names()) {
    const auto entry = PlacementRegistry::Find(name);
    absl::StrAppend(&text, name, ": ", entry.ok() ? entry->help : "", "\n");
  }
  return text;
}

std::string DescribeCodecs() {
  std::string text;
  for (const std::string& name : CodecRegistry::Names()) {
    const auto codec = CodecRegistry::Find(name);
    if (!codec.ok()) continue;
    absl::StrAppend(&text, name, ": ", EncodedBytes(*codec, 1),
                    " bytes a value, relative error at most ",
                    (*codec)->relative_error(), ", largest value ",
                    (*codec)->largest(), "\n");
  }
  absl::StrAppend(&text,
                  "with any of them, gradient.error_feedback adds what it took "
                  "from one gradient to the next; pull.codec is for the "
                  "parameters that steps are computed from\n");
  return text;
}

}  // namespace

std::string DescribeComponents(const GpuOptions& gpu) {
  return absl::StrCat(
      "Layers\n", Indent(DescribeLayerTypes()), "\nOptimizers\n",
      Indent(DescribeOptimizers()), "\nSchedules\n",
      Indent(LearningRate::DescribeSchedules()), "\nPlacements\n",
      Indent(DescribePlacements()), "\nCodecs\n", Indent(DescribeCodecs()),
      "\nBackends\n", Indent(DescribeDevices(gpu)));
}

}  // namespace muster
