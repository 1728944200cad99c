#include "common/summary/hparams.h"

#include <cmath>
#include <string>

#include "absl/strings/numbers.h"

namespace muster {
namespace {

void AddData(absl::string_view tag, const HparamsPluginData& data,
             Summary* summary) {
  Summary::Value* const value = summary->add_value();
  value->set_tag(std::string(tag));
  SummaryMetadata* const metadata = value->mutable_metadata();
  metadata->mutable_plugin_data()->set_plugin_name("hparams");
  metadata->mutable_plugin_data()->set_content(data.SerializeAsString());
  metadata->set_data_class(DATA_CLASS_TENSOR);
  value->mutable_tensor()->set_dtype(DT_FLOAT);
  value->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(0);
}

}  // namespace

void AddHparamsStart(const HparamsSessionStart& start, Summary* summary) {
  HparamsPluginData data;
  *data.mutable_session_start_info() = start;
  AddData("_hparams_/session_start_info", data, summary);
}

void AddHparamsEnd(const HparamsSessionEnd& end, Summary* summary) {
  HparamsPluginData data;
  *data.mutable_session_end_info() = end;
  AddData("_hparams_/session_end_info", data, summary);
}

HparamValue HparamOf(double number) {
  HparamValue value;
  value.set_number_value(number);
  return value;
}

HparamValue HparamOf(absl::string_view text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) {
    return HparamOf(number);
  }
  HparamValue value;
  if (text == "true" || text == "false") {
    value.set_bool_value(text == "true");
  } else {
    value.set_string_value(std::string(text));
  }
  return value;
}

}  // namespace muster
