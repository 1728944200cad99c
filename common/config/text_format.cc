#include "common/config/text_format.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace muster {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::DescriptorPool;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::google::protobuf::TextFormat;

// The deepest message of ours has 5 levels.
constexpr int kMaxDepth = 32;

// Keeps the first error, which usually causes the others.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (line_ >= 0) return;
    line_ = std::max(line, 0);
    column_ = std::max(column, 0);
    message_ = message;
  }

  absl::Status ToStatus(absl::string_view source) const {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ":", line_ + 1, ":", column_ + 1, ": ", Improved(message_)));
  }

 private:
  // protobuf's text, with the nearest name where a field is unknown:
  //   Message type "muster.StopSpec" has no field named "step".
  static std::string Improved(const std::string& message) {
    const std::vector<std::string> parts = absl::StrSplit(message, '"');
    if (parts.size() == 5 && parts[2] == " has no field named ") {
      const Descriptor* type =
          DescriptorPool::generated_pool()->FindMessageTypeByName(parts[1]);
      if (type != nullptr) {
        return UnknownNameMessage(absl::StrCat(type->name(), " field"),
                                  EscapeForLog(parts[3]), FieldNames(*type));
      }
    }
    // It has only nothing to show for the end of the text.
    for (const absl::string_view nothing : {"got: ", "found \"\"."}) {
      if (!absl::EndsWith(message, nothing)) continue;
      return absl::StrCat(
          EscapeForLog(message.substr(0, message.size() - nothing.size())),
          "found the end of the text; is a '}' missing?");
    }
    return EscapeForLog(message);
  }

  int line_ = -1;
  int column_ = -1;
  std::string message_ = "the text does not parse";
};

absl::Status CheckMapKeys(const Message& message,
                          TextFormat::ParseInfoTree* locations,
                          absl::string_view source);

// The parser keeps all entries of a map until somebody asks for the map.
absl::Status CheckMap(const Message& message, const FieldDescriptor* field,
                      const TextFormat::ParseInfoTree& locations,
                      absl::string_view source) {
  const FieldDescriptor* key_field = field->message_type()->map_key();
  const Reflection* reflection = message.GetReflection();
  std::set<std::string> keys;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    std::string key;
    TextFormat::PrintFieldValueToString(
        reflection->GetRepeatedMessage(message, field, i), key_field, -1, &key);
    if (keys.insert(key).second) continue;
    const TextFormat::ParseLocation at = locations.GetLocation(field, i);
    return absl::InvalidArgumentError(
        absl::StrCat(source, ":", at.line + 1, ":", at.column + 1, ": '",
                     field->name(), "' has the key ", key, " twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckField(const Message& message, const FieldDescriptor* field,
                        TextFormat::ParseInfoTree* locations,
                        absl::string_view source) {
  const Reflection* reflection = message.GetReflection();
  if (field->is_map()) return CheckMap(message, field, *locations, source);
  const int count = field->is_repeated()
                        ? reflection->FieldSize(message, field)
                        : (reflection->HasField(message, field) ? 1 : 0);
  for (int i = 0; i < count; ++i) {
    const int index = field->is_repeated() ? i : -1;
    TextFormat::ParseInfoTree* nested =
        locations->GetTreeForNested(field, index);
    if (nested == nullptr) continue;
    RETURN_IF_ERROR(CheckMapKeys(
        field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                             : reflection->GetMessage(message, field),
        nested, source));
  }
  return absl::OkStatus();
}

absl::Status CheckMapKeys(const Message& message,
                          TextFormat::ParseInfoTree* locations,
                          absl::string_view source) {
  const Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    RETURN_IF_ERROR(CheckField(message, field, locations, source));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseTextProto(absl::string_view text, absl::string_view source,
                            Message* message) {
  FirstError error;
  TextFormat::ParseInfoTree locations;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&locations);
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFromString(std::string(text), message)) {
    return error.ToStatus(source);
  }
  return CheckMapKeys(*message, &locations, source);
}

std::vector<std::string> FieldNames(const Descriptor& descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    names.push_back(descriptor.field(i)->name());
  }
  return names;
}

}  // namespace muster
