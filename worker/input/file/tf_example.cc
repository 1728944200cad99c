#include "worker/input/file/tf_example.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kShownNames = 50;

int64_t CountOf(const Feature& feature) {
  switch (feature.kind_case()) {
    case Feature::kBytesList:
      return feature.bytes_list().value_size();
    case Feature::kFloatList:
      return feature.float_list().value_size();
    case Feature::kInt64List:
      return feature.int64_list().value_size();
    case Feature::KIND_NOT_SET:
      break;
  }
  return 0;
}

absl::string_view NameOf(Feature::KindCase kind) {
  switch (kind) {
    case Feature::kBytesList:
      return "strings of bytes";
    case Feature::kFloatList:
      return "floats";
    case Feature::kInt64List:
      return "integers";
    case Feature::KIND_NOT_SET:
      break;
  }
  return "values";
}

absl::Status Mismatch(const std::string& name, const Feature& feature,
                      int64_t count, absl::string_view kind) {
  return absl::InvalidArgumentError(absl::StrCat(
      "feature '", name, "': wanted ", count, " ", kind, ", found ",
      CountOf(feature), " ", NameOf(feature.kind_case())));
}

bool Has(const Feature& feature, Feature::KindCase kind, int64_t count) {
  return feature.kind_case() == kind && CountOf(feature) == count;
}

}  // namespace

absl::Status TfExample::Parse(absl::string_view record) {
  if (record.size() <= INT32_MAX &&
      example_.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "wanted a tf.Example, found ", record.size(), " bytes that are none"));
}

absl::Status TfExample::ReadFloats(const std::string& name,
                                   absl::Span<float> dst) const {
  ASSIGN_OR_RETURN(const Feature* feature, Find(name));
  const int64_t count = static_cast<int64_t>(dst.size());
  if (Has(*feature, Feature::kFloatList, count)) {
    const auto& values = feature->float_list().value();
    std::copy(values.begin(), values.end(), dst.begin());
    return absl::OkStatus();
  }
  if (Has(*feature, Feature::kInt64List, count)) {
    const auto& values = feature->int64_list().value();
    std::transform(values.begin(), values.end(), dst.begin(),
                   [](int64_t value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }
  return Mismatch(name, *feature, count, "floats or integers");
}

absl::Status TfExample::ReadIntegers(const std::string& name,
                                     absl::Span<int64_t> dst) const {
  ASSIGN_OR_RETURN(const Feature* feature, Find(name));
  const int64_t count = static_cast<int64_t>(dst.size());
  if (!Has(*feature, Feature::kInt64List, count)) {
    return Mismatch(name, *feature, count, "integers");
  }
  const auto& values = feature->int64_list().value();
  std::copy(values.begin(), values.end(), dst.begin());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TfExample::Integer(const std::string& name) const {
  int64_t value = 0;
  RETURN_IF_ERROR(ReadIntegers(name, absl::MakeSpan(&value, 1)));
  return value;
}

absl::StatusOr<absl::string_view> TfExample::Bytes(
    const std::string& name) const {
  ASSIGN_OR_RETURN(const Feature* feature, Find(name));
  if (!Has(*feature, Feature::kBytesList, 1)) {
    return Mismatch(name, *feature, 1, "string of bytes");
  }
  return absl::string_view(feature->bytes_list().value(0));
}

absl::StatusOr<Feature::KindCase> TfExample::Kind(
    const std::string& name) const {
  ASSIGN_OR_RETURN(const Feature* feature, Find(name));
  return feature->kind_case();
}

absl::StatusOr<const Feature*> TfExample::Find(const std::string& name) const {
  const auto& features = example_.features().feature();
  const auto found = features.find(name);
  if (found != features.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& entry : features) {
    names.push_back(EscapeForLog(entry.first));
  }
  std::sort(names.begin(), names.end());
  names.resize(std::min(names.size(), kShownNames));
  return absl::InvalidArgumentError(UnknownNameMessage("feature", name, names));
}

}  // namespace muster
