#ifndef COMMON_CONFIG_JSON_QUOTE_H_
#define COMMON_CONFIG_JSON_QUOTE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// `text` as a JSON string, with its quotes. Bytes above 0x7f pass: UTF-8 in,
// UTF-8 out.
std::string JsonQuote(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CONFIG_JSON_QUOTE_H_
