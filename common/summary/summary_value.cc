#include "common/summary/summary_value.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

Summary::Value* AddValue(absl::string_view tag, absl::string_view plugin,
                         DataClass data_class, Summary* summary) {
  Summary::Value* const value = summary->add_value();
  value->set_tag(std::string(tag));
  SummaryMetadata* const metadata = value->mutable_metadata();
  metadata->mutable_plugin_data()->set_plugin_name(std::string(plugin));
  metadata->set_data_class(data_class);
  return value;
}

}  // namespace

void AddScalar(absl::string_view tag, double value, Summary* summary) {
  SummaryTensor* const tensor =
      AddValue(tag, "scalars", DATA_CLASS_SCALAR, summary)->mutable_tensor();
  tensor->set_dtype(DT_FLOAT);
  tensor->mutable_tensor_shape();
  tensor->add_float_val(static_cast<float>(value));
}

void AddHistogram(absl::string_view tag, const Histogram& histogram,
                  Summary* summary) {
  SummaryTensor* const tensor =
      AddValue(tag, "histograms", DATA_CLASS_TENSOR, summary)->mutable_tensor();
  tensor->set_dtype(DT_DOUBLE);
  SummaryShape* const shape = tensor->mutable_tensor_shape();
  shape->add_dim()->set_size(Histogram::kBuckets);
  shape->add_dim()->set_size(3);
  for (const Histogram::Bucket& bucket : histogram.buckets) {
    tensor->add_double_val(bucket.left);
    tensor->add_double_val(bucket.right);
    tensor->add_double_val(bucket.count);
  }
}

void AddImages(absl::string_view tag, int64_t width, int64_t height,
               absl::Span<const std::string> pngs, Summary* summary) {
  SummaryTensor* const tensor =
      AddValue(tag, "images", DATA_CLASS_BLOB_SEQUENCE, summary)
          ->mutable_tensor();
  tensor->set_dtype(DT_STRING);
  // The size stands before the files.
  tensor->mutable_tensor_shape()->add_dim()->set_size(
      static_cast<int64_t>(pngs.size()) + 2);
  tensor->add_string_val(absl::StrCat(width));
  tensor->add_string_val(absl::StrCat(height));
  for (const std::string& png : pngs) tensor->add_string_val(png);
}

void AddText(absl::string_view tag, absl::string_view markdown,
             Summary* summary) {
  SummaryTensor* const tensor =
      AddValue(tag, "text", DATA_CLASS_TENSOR, summary)->mutable_tensor();
  tensor->set_dtype(DT_STRING);
  tensor->mutable_tensor_shape();
  tensor->add_string_val(std::string(markdown));
}

// By indentation: a fence could stand in the text.
std::string MarkdownBlock(absl::string_view text) {
  std::string block;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&block, "    ", line, "\n");
  }
  return block;
}

}  // namespace muster
