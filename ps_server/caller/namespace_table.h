#ifndef PS_SERVER_CALLER_NAMESPACE_TABLE_H_
#define PS_SERVER_CALLER_NAMESPACE_TABLE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace muster {

// Whether a named namespace may come: its name is one, and there is room
// beside `names`. `what`, the request, begins every error: InvalidArgument,
// Unimplemented if there may be none (`max_named` 0), ResourceExhausted, which
// names those that are there.
absl::Status CheckNewNamespace(absl::string_view what, absl::string_view name,
                               const std::vector<std::string>& names,
                               size_t max_named);

// What a ps process has for each namespace, such as a model: for the default
// one, "", always; for named ones from their first request on. Not thread-safe.
template <typename Value>
class NamespaceTable {
 public:
  // At most `max_named` named ones. The default namespace's value is made of
  // `args`.
  template <typename... Args>
  explicit NamespaceTable(size_t max_named, Args&&... args)
      : max_named_(max_named) {
    Put("", std::forward<Args>(args)...);
  }
  NamespaceTable(const NamespaceTable&) = delete;
  NamespaceTable& operator=(const NamespaceTable&) = delete;

  // Null if it is not there.
  Value* Find(absl::string_view name) {
    if (name.empty()) return default_;
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : &it->second;
  }

  // Makes it of `args` if it is not there. Errors: CheckNewNamespace's.
  template <typename... Args>
  absl::StatusOr<Value*> FindOrAdd(absl::string_view what,
                                   absl::string_view name, Args&&... args) {
    if (Value* const value = Find(name)) return value;
    RETURN_IF_ERROR(CheckNewNamespace(what, name, Names(), max_named_));
    return Put(name, std::forward<Args>(args)...);
  }

  // Makes it anew of `args`; what was there is gone.
  template <typename... Args>
  Value* Put(absl::string_view name, Args&&... args) {
    values_.erase(std::string(name));
    Value* const value =
        &values_
             .emplace(std::piecewise_construct, std::forward_as_tuple(name),
                      std::forward_as_tuple(std::forward<Args>(args)...))
             .first->second;
    if (name.empty()) default_ = value;
    return value;
  }

  // REQUIRES: not the default one.
  void Erase(absl::string_view name) { values_.erase(std::string(name)); }

  // The value of the default namespace.
  const Value& default_value() const { return *default_; }
  Value& default_value() { return *default_; }

  bool serves_many() const { return max_named_ > 0; }

  // The named ones.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : values_) {
      if (!name.empty()) names.push_back(name);
    }
    return names;
  }

  // Calls visit(name, value) for each, the default one first.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& [name, value] : values_) visit(name, value);
  }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [name, value] : values_) visit(name, value);
  }

 private:
  const size_t max_named_;
  std::map<std::string, Value, std::less<>> values_;
  Value* default_ = nullptr;
};

}  // namespace muster

#endif  // PS_SERVER_CALLER_NAMESPACE_TABLE_H_
