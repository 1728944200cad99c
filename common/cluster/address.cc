#include "common/cluster/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// RFC 1035's limits on a name and on one of its labels.
constexpr size_t kMaxNameLength = 253;
constexpr size_t kMaxLabelLength = 63;

bool IsIp(int family, absl::string_view host) {
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(family, std::string(host).c_str(), address) == 1;
}

// Underscores are not in RFC 1035, but container networks use them. A final dot
// says that the name is whole; /etc/hosts and certificates have none.
bool IsDnsName(absl::string_view host) {
  absl::ConsumeSuffix(&host, ".");
  if (host.empty() || host.size() > kMaxNameLength) return false;
  for (absl::string_view label : absl::StrSplit(host, '.')) {
    if (label.empty() || label.size() > kMaxLabelLength) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    if (!std::all_of(label.begin(), label.end(), [](unsigned char c) {
          return absl::ascii_isalnum(c) || c == '-' || c == '_';
        })) {
      return false;
    }
  }
  return true;
}

bool IsHost(absl::string_view host) {
  const bool looks_like_ip4 =
      !host.empty() &&
      host.find_first_not_of("0123456789.") == absl::string_view::npos;
  return looks_like_ip4 ? IsIp(AF_INET, host) : IsDnsName(host);
}

absl::Status BadAddress(absl::string_view text, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("address '", EscapeForLog(text), "': ", problem,
                   "; wanted host:port, for example localhost:2222 or "
                   "[::1]:2222"));
}

}  // namespace

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme != absl::string_view::npos) {
    return BadAddress(
        text, absl::StrCat("is a URL; leave '",
                           EscapeForLog(text.substr(0, scheme + 3)), "' out"));
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return BadAddress(text, "has no port");
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  if (host.empty()) return BadAddress(text, "has no host");
  int32_t number = 0;
  if (port.empty() || port.size() > 5 ||
      !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &number) || number < 1 || number > 65535) {
    return BadAddress(text, "the port must be a number from 1 to 65535");
  }
  if (absl::ConsumePrefix(&host, "[")) {
    if (!absl::ConsumeSuffix(&host, "]") || !IsIp(AF_INET6, host)) {
      return BadAddress(text, "the brackets hold no IPv6 address");
    }
  } else if (absl::StrContains(host, ':')) {
    return BadAddress(text, "an IPv6 address needs brackets");
  } else if (!IsHost(host)) {
    return BadAddress(text, "the host is neither a name nor an address");
  }
  absl::ConsumeSuffix(&host, ".");
  return Address{std::string(host), number};
}

bool IsLoopback(const Address& address) {
  if (absl::EqualsIgnoreCase(address.host, "localhost")) return true;
  in6_addr ip6;
  if (inet_pton(AF_INET6, address.host.c_str(), &ip6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&ip6) ||
           (IN6_IS_ADDR_V4MAPPED(&ip6) && ip6.s6_addr[12] == 127);
  }
  return IsIp(AF_INET, address.host) && absl::StartsWith(address.host, "127.");
}

bool IsAny(const Address& address) {
  in6_addr ip6;
  if (inet_pton(AF_INET6, address.host.c_str(), &ip6) == 1) {
    return IN6_IS_ADDR_UNSPECIFIED(&ip6);
  }
  in_addr ip4;
  return inet_pton(AF_INET, address.host.c_str(), &ip4) == 1 &&
         ip4.s_addr == INADDR_ANY;
}

}  // namespace muster
