#include "worker/input/file/tf_example.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"

namespace muster {
namespace {

constexpr size_t kShownNames = 50;

}  // namespace

absl::Status TfExample::Parse(absl::string_view record) {
  if (record.size() <= INT32_MAX &&
      example_.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "wanted a tf.Example, found ", record.size(), " bytes that are none"));
}

absl::StatusOr<TfExample::Values> TfExample::Get(
    const std::string& name) const {
  const auto& features = example_.features().feature();
  const auto found = features.find(name);
  if (found == features.end()) {
    std::vector<std::string> names;
    for (const auto& entry : features) {
      names.push_back(EscapeForLog(entry.first));
    }
    std::sort(names.begin(), names.end());
    names.resize(std::min(names.size(), kShownNames));
    return absl::InvalidArgumentError(
        UnknownNameMessage("feature", name, names));
  }
  const Feature& feature = found->second;
  switch (feature.kind_case()) {
    case Feature::kFloatList:
      return absl::MakeConstSpan(feature.float_list().value().data(),
                                 feature.float_list().value_size());
    case Feature::kInt64List:
      return absl::MakeConstSpan(feature.int64_list().value().data(),
                                 feature.int64_list().value_size());
    case Feature::kBytesList:
      if (feature.bytes_list().value_size() == 1) {
        return absl::string_view(feature.bytes_list().value(0));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("feature '", name, "': wanted 1 string of bytes, found ",
                       feature.bytes_list().value_size()));
    case Feature::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("feature '", name, "': found 0 values"));
}

}  // namespace muster
