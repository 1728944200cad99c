#include "common/rpc/server/peer_machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// An address as IPv6 has it, so that both kinds compare; IPv4 is mapped.
struct Address {
  in6_addr bytes = {};

  bool operator==(const Address& other) const {
    return std::memcmp(&bytes, &other.bytes, sizeof(bytes)) == 0;
  }
  bool IsLoopback() const {
    return IN6_IS_ADDR_LOOPBACK(&bytes) ||
           (IN6_IS_ADDR_V4MAPPED(&bytes) && bytes.s6_addr[12] == 127);
  }
};

// Mapped: ::ffff:a.b.c.d.
Address OfIpv4(const in_addr& ipv4) {
  Address address;
  address.bytes.s6_addr[10] = 0xFF;
  address.bytes.s6_addr[11] = 0xFF;
  std::memcpy(&address.bytes.s6_addr[12], &ipv4, sizeof(ipv4));
  return address;
}

bool ParseAddress(const std::string& text, Address* address) {
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) {
    *address = OfIpv4(ipv4);
    return true;
  }
  return inet_pton(AF_INET6, text.c_str(), &address->bytes) == 1;
}

bool IsOwn(const Address& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> own(list, &freeifaddrs);
  for (const ifaddrs* it = list; it != nullptr; it = it->ifa_next) {
    if (it->ifa_addr == nullptr) continue;
    Address mine;
    if (it->ifa_addr->sa_family == AF_INET) {
      mine =
          OfIpv4(reinterpret_cast<const sockaddr_in*>(it->ifa_addr)->sin_addr);
    } else if (it->ifa_addr->sa_family == AF_INET6) {
      mine.bytes =
          reinterpret_cast<const sockaddr_in6*>(it->ifa_addr)->sin6_addr;
    } else {
      continue;
    }
    if (mine == address) return true;
  }
  return false;
}

}  // namespace

bool IsPeerOfThisMachine(absl::string_view peer) {
  if (absl::StartsWith(peer, "unix:") || absl::StartsWith(peer, "inproc")) {
    return true;
  }
  if (!absl::ConsumePrefix(&peer, "ipv4:") &&
      !absl::ConsumePrefix(&peer, "ipv6:")) {
    return false;
  }
  std::string host(peer.substr(0, peer.rfind(':')));
  host = absl::StrReplaceAll(host,
                             {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  // A link-local address names its interface.
  host = host.substr(0, host.find('%'));
  Address address;
  return ParseAddress(host, &address) &&
         (address.IsLoopback() || IsOwn(address));
}

}  // namespace muster
