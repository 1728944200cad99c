#ifndef COMMON_CLUSTER_ADDRESS_H_
#define COMMON_CLUSTER_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where a task listens.
struct Address {
  // A DNS name without a final dot, an IPv4 address, or an IPv6 address without
  // its brackets.
  std::string host;
  // 1 to 65535.
  int port = 0;
};

// Parses "host:port", "10.0.0.1:2222" or "[::1]:2222".
// Errors: InvalidArgument that says what is wrong with which part.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// Is this "localhost" or in 127.0.0.0/8 or ::1? Other names are not looked up:
// what DNS answers today is no protection tomorrow.
bool IsLoopback(const Address& address);

// Is this 0.0.0.0 or [::], where one listens and whom nobody else can dial?
bool IsAny(const Address& address);

}  // namespace muster

#endif  // COMMON_CLUSTER_ADDRESS_H_
