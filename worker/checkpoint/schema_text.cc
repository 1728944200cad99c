#include "worker/checkpoint/schema_text.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "google/protobuf/text_format.h"

namespace muster {
namespace {

// Before and after the version, which is that of the manifests with a schema.
constexpr absl::string_view kBefore = "# The data of a Muster run, format ";
constexpr absl::string_view kAfter = "; not to be edited.\n";

}  // namespace

std::string SchemaPath(absl::string_view train_dir) {
  return absl::StrCat(train_dir, "/schema.textproto");
}

std::string FormatSchema(const DataSchema& schema) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(schema, &text);
  return WithCrcLine(
      absl::StrCat(kBefore, kFirstFormatWithSchema, kAfter, text));
}

absl::StatusOr<DataSchema> ParseSchema(absl::string_view text) {
  absl::string_view first = text.substr(0, text.find('\n'));
  if (!absl::ConsumePrefix(&first, kBefore)) {
    return absl::DataLossError(
        "it is no schema that a training wrote; the name is kept for one");
  }
  if (!CrcLineFits(text)) {
    return absl::DataLossError(
        "it was cut short or edited: the CRC in its last line does not fit");
  }
  int64_t version = 0;
  if (!absl::SimpleAtoi(first.substr(0, first.find(';')), &version) ||
      version > kFirstFormatWithSchema) {
    return absl::DataLossError(
        absl::StrCat("it has format ", first.substr(0, first.find(';')),
                     ", this program reads up to ", kFirstFormatWithSchema,
                     "; use the newer Muster"));
  }
  DataSchema schema;
  const absl::Status parsed = ParseTextProto(text, "its text", &schema);
  if (!parsed.ok()) return absl::DataLossError(parsed.message());
  return schema;
}

}  // namespace muster
