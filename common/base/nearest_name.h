#ifndef COMMON_BASE_NEAREST_NAME_H_
#define COMMON_BASE_NEAREST_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// Returns the known name with the smallest edit distance to `name`, or "" if
// none is near enough to be a likely misspelling.
std::string NearestName(absl::string_view name,
                        absl::Span<const std::string> known);

// "unknown layer 'dense2'; did you mean 'dense'? known: conv2d, dense, ..."
std::string UnknownNameMessage(absl::string_view kind, absl::string_view name,
                               absl::Span<const std::string> known);

}  // namespace muster

#endif  // COMMON_BASE_NEAREST_NAME_H_
