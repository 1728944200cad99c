#ifndef COMMON_PROCESS_OWN_HOST_H_
#define COMMON_PROCESS_OWN_HOST_H_

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Does `host`, a name or an IP address, stand for an address of one of this
// machine's interfaces (in a container: of the container's)? A name is looked
// up; one that stands for nothing is not this machine's.
// Errors: Unavailable if whoever knows names does not answer now.
absl::StatusOr<bool> IsOwnHost(const std::string& host);

}  // namespace muster

#endif  // COMMON_PROCESS_OWN_HOST_H_
