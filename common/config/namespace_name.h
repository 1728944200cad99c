#ifndef COMMON_CONFIG_NAMESPACE_NAME_H_
#define COMMON_CONFIG_NAMESPACE_NAME_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr size_t kMaxNamespaceName = 128;

// Checks the name of a namespace: letters, digits and "_./-", at most
// kMaxNamespaceName of them; "" is the default one. Errors: InvalidArgument,
// beginning with `what`.
absl::Status CheckNamespaceName(absl::string_view what, absl::string_view name);

// A name as lines and messages show it: "namespace 'a'".
std::string QuotedNamespace(absl::string_view name);

}  // namespace muster

#endif  // COMMON_CONFIG_NAMESPACE_NAME_H_
