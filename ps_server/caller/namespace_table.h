#ifndef PS_SERVER_CALLER_NAMESPACE_TABLE_H_
#define PS_SERVER_CALLER_NAMESPACE_TABLE_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The refusal of a namespace that is not there: Unimplemented, beginning with
// `what`, the request.
absl::Status UnknownNamespace(absl::string_view what, absl::string_view name);

// What a ps process has for each namespace, such as a model: one for now, of
// the default namespace "". Not thread-safe.
template <typename Value>
class NamespaceTable {
 public:
  // The default namespace's value is made of `args`.
  template <typename... Args>
  explicit NamespaceTable(Args&&... args) {
    values_.try_emplace("", std::forward<Args>(args)...);
  }
  NamespaceTable(const NamespaceTable&) = delete;
  NamespaceTable& operator=(const NamespaceTable&) = delete;

  // Errors: UnknownNamespace.
  absl::StatusOr<Value*> Find(absl::string_view what, absl::string_view name) {
    const auto it = values_.find(name);
    if (it == values_.end()) return UnknownNamespace(what, name);
    return &it->second;
  }

  // The value of the default namespace, which is always there, and first.
  const Value& default_value() const { return values_.begin()->second; }
  Value& default_value() { return values_.begin()->second; }

  // Calls visit(value) for each of them.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& [name, value] : values_) visit(value);
  }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace muster

#endif  // PS_SERVER_CALLER_NAMESPACE_TABLE_H_
