#include "worker/model/layer_devices.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/name_pattern.h"
#include "worker/backend/device_name.h"

namespace muster {
namespace {

constexpr char kField[] = "model.device_rule";

// Gives its device to the layers that it matches and that have none yet.
absl::Status ApplyRule(const DeviceRuleSpec& rule,
                       const std::vector<std::string>& names,
                       std::vector<std::string>* devices) {
  ASSIGN_OR_RETURN(const std::unique_ptr<NamePattern> pattern,
                   NamePattern::Create(kField, rule.pattern()));
  if (rule.device().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField, " '", rule.pattern(),
                     "': it has no device; wanted one such as \"cpu:1\""));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if ((*devices)[i].empty() && pattern->MatchesWhole(names[i])) {
      (*devices)[i] = CanonicalDevice(rule.device());
    }
  }
  return pattern->CheckMatches(kField, names);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LayerDevices(const ModelSpec& model) {
  std::vector<std::string> names;
  std::vector<std::string> devices;
  for (const LayerSpec& layer : model.layer()) {
    names.push_back(layer.name());
    devices.push_back(CanonicalDevice(layer.device()));
  }
  for (const DeviceRuleSpec& rule : model.device_rule()) {
    RETURN_IF_ERROR(ApplyRule(rule, names, &devices));
  }
  return devices;
}

}  // namespace muster
