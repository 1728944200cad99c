#ifndef COMMON_BASE_READ_FILE_H_
#define COMMON_BASE_READ_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// No configuration comes near it; what is larger was named by mistake.
inline constexpr int64_t kMaxConfigBytes = 1 << 20;

// Returns the whole of a configuration file. Errors, each with the path:
// NotFound, InvalidArgument (not a regular file, more than `max_bytes`),
// PermissionDenied, Unavailable (reading failed).
absl::StatusOr<std::string> ReadFile(absl::string_view path,
                                     int64_t max_bytes = kMaxConfigBytes);

}  // namespace muster

#endif  // COMMON_BASE_READ_FILE_H_
