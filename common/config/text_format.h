#ifndef COMMON_CONFIG_TEXT_FORMAT_H_
#define COMMON_CONFIG_TEXT_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace muster {

// Parses protobuf text into `message`. `source` names the text in messages,
// usually its file.
// Errors: InvalidArgument, "source:line:column: ...", for an unknown field with
// the nearest field's name; also for a map key that is given twice, which
// protobuf alone would take silently, and for deep nesting.
absl::Status ParseTextProto(absl::string_view text, absl::string_view source,
                            google::protobuf::Message* message);

// Names of the message's fields, in their order.
std::vector<std::string> FieldNames(
    const google::protobuf::Descriptor& descriptor);

}  // namespace muster

#endif  // COMMON_CONFIG_TEXT_FORMAT_H_
