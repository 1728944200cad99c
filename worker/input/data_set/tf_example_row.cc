#include "worker/input/data_set/tf_example_row.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/file/class_names.h"
#include "worker/input/image/image_decoder.h"

namespace muster {
namespace {

constexpr const char* kUsualFeatures[] = {"image", "image_raw", "features",
                                          "x"};
constexpr char kDefaultLabel[] = "label";

// input.feature_column, or the first usual name that the example has.
std::string FeatureOf(const InputSpec& spec, const TfExample& example) {
  if (!spec.feature_column().empty()) return spec.feature_column();
  for (const char* const name : kUsualFeatures) {
    if (example.Kind(name).ok()) return name;
  }
  return kUsualFeatures[0];
}

absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

absl::StatusOr<TfExampleRow> TfExampleRow::Create(const DataSetRequest& request,
                                                  const TfExample& first) {
  TfExampleRow row(request, FeatureOf(request.spec, first));
  const absl::StatusOr<absl::string_view> bytes = first.Bytes(row.feature_);
  // Raw pixels may begin like an image file, but those are seldom as long.
  if (bytes.ok() && IsImageFile(AsBytes(*bytes)) &&
      static_cast<int64_t>(bytes->size()) != row.shape_.num_elements()) {
    ASSIGN_OR_RETURN(row.image_,
                     ExampleImage::Create(request.example_shape,
                                          !request.spec.shape().empty()));
  }
  return row;
}

TfExampleRow::TfExampleRow(const DataSetRequest& request, std::string feature)
    : shape_(request.example_shape),
      feature_(std::move(feature)),
      label_(request.spec.label_column().empty() ? kDefaultLabel
                                                 : request.spec.label_column()),
      num_targets_(request.labels.num_targets) {}

absl::Status TfExampleRow::ReadValues(const TfExample& example,
                                      float* dst) const {
  ASSIGN_OR_RETURN(const Feature::KindCase kind, example.Kind(feature_));
  if (kind != Feature::kBytesList) {
    return example.ReadFloats(feature_,
                              absl::MakeSpan(dst, shape_.num_elements()));
  }
  ASSIGN_OR_RETURN(const absl::string_view bytes, example.Bytes(feature_));
  return Annotate(image_.has_value() ? image_->Decode(AsBytes(bytes), dst)
                                     : ReadPixels(bytes, dst),
                  absl::StrCat("feature '", feature_, "'"));
}

absl::Status TfExampleRow::ReadPixels(absl::string_view bytes,
                                      float* dst) const {
  const int64_t values = shape_.num_elements();
  if (static_cast<int64_t>(bytes.size()) != values) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted the ", values, " bytes of an example of model.input_shape ",
        shape_.ToString(), ", found ", bytes.size()));
  }
  if (shape_.rank() == 3) {
    ToChannelsFirst(AsBytes(bytes).data(), shape_, 255.0f, dst);
  } else {
    ScaleBytes(AsBytes(bytes), dst);
  }
  return absl::OkStatus();
}

absl::Status TfExampleRow::ReadLabel(const TfExample& example,
                                     const ExampleMemory& into) const {
  if (into.targets != nullptr) {
    return example.ReadFloats(label_,
                              absl::MakeSpan(into.targets, num_targets_));
  }
  if (into.label == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t found, example.Integer(label_));
  if (found < 0 || found >= ClassNames::kMaxClasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature '", label_, "': a label must be a class from 0 to ",
        ClassNames::kMaxClasses - 1, ", found ", found));
  }
  *into.label = static_cast<int32_t>(found);
  return absl::OkStatus();
}

}  // namespace muster
