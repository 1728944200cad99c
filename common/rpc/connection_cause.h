#ifndef COMMON_RPC_CONNECTION_CAUSE_H_
#define COMMON_RPC_CONNECTION_CAUSE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// gRPC's words for a failed connection as one readable cause: "connection
// refused; nothing listens there yet". Others as they are, fit for a log line.
std::string ConnectionCause(absl::string_view message);

}  // namespace muster

#endif  // COMMON_RPC_CONNECTION_CAUSE_H_
