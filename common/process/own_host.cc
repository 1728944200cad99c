#include "common/process/own_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

template <typename T>
const T& As(const sockaddr* address) {
  return *reinterpret_cast<const T*>(address);
}

// Ports and scopes do not count.
bool IsSame(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return As<sockaddr_in>(a).sin_addr.s_addr ==
           As<sockaddr_in>(b).sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 &&
         std::memcmp(&As<sockaddr_in6>(a).sin6_addr,
                     &As<sockaddr_in6>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

// All of 127.0.0.0/8 is there; an interface has its first alone.
bool IsLoopback(const sockaddr* address) {
  return address->sa_family == AF_INET &&
         ntohl(As<sockaddr_in>(address).sin_addr.s_addr) >> 24 ==
             IN_LOOPBACKNET;
}

}  // namespace

absl::StatusOr<bool> IsOwnHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* looked_up = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &looked_up);
  if (error == EAI_AGAIN) {
    return absl::UnavailableError(
        absl::StrCat("look up ", host, ": ", gai_strerror(error)));
  }
  if (error != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(looked_up,
                                                                 &freeaddrinfo);
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) found = nullptr;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> own(found, &freeifaddrs);
  for (const addrinfo* one = looked_up; one != nullptr; one = one->ai_next) {
    if (IsLoopback(one->ai_addr)) return true;
    for (const ifaddrs* mine = found; mine != nullptr; mine = mine->ifa_next) {
      if (mine->ifa_addr != nullptr && IsSame(mine->ifa_addr, one->ai_addr)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace muster
