#ifndef COMMON_CONFIG_JSON_OBJECT_H_
#define COMMON_CONFIG_JSON_OBJECT_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/config/json_quote.h"

namespace muster {

// The text of an object, a member a line:
//
//   JsonObject object(/*indent=*/2);
//   object.AddNumber("test_loss", 0.25);
//   const std::string text = object.Finish();
class JsonObject {
 public:
  // `indent`: the spaces before a member; two fewer are before the last brace.
  explicit JsonObject(int indent) : indent_(indent) {}

  void Add(absl::string_view name, absl::string_view raw_value) {
    absl::StrAppend(&members_, members_.empty() ? "\n" : ",\n",
                    std::string(indent_, ' '), JsonQuote(name), ": ",
                    raw_value);
  }
  void AddText(absl::string_view name, absl::string_view value) {
    Add(name, JsonQuote(value));
  }
  // JSON has no NaN, so that it is null; 17 digits would show noise that nobody
  // reads.
  void AddNumber(absl::string_view name, double value) {
    Add(name, std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null");
  }
  void AddCount(absl::string_view name, int64_t value) {
    Add(name, absl::StrCat(value));
  }
  std::string Finish() const {
    return absl::StrCat("{", members_, "\n", std::string(indent_ - 2, ' '),
                        "}");
  }

 private:
  const int indent_;
  std::string members_;
};

}  // namespace muster

#endif  // COMMON_CONFIG_JSON_OBJECT_H_
