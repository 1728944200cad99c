#include "common/rpc/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/address.h"

namespace muster {
namespace {

absl::StatusOr<Address> ParseListenAddress(absl::string_view text) {
  if (!absl::EndsWith(text, ":0")) return ParseAddress(text);
  text.remove_suffix(1);
  ASSIGN_OR_RETURN(Address address, ParseAddress(absl::StrCat(text, "1")));
  address.port = 0;
  return address;
}

absl::Status CheckReach(absl::string_view deed, absl::string_view text,
                        const Address& address, bool allow_insecure_network) {
  if (IsLoopback(address) || allow_insecure_network) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "refusing to ", deed, " ", text,
      ": it is on the network, and this version has neither encryption nor "
      "authentication (TLS comes in a later one). Two ways out: keep the "
      "cluster on one machine (localhost addresses, or --bind=localhost:PORT "
      "behind a tunnel of your own), or, on a network where you trust "
      "everybody, pass --allow_insecure_network"));
}

// Binds and closes a socket; 0 or errno.
int TryBind(const addrinfo& where) {
  const int fd = socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  // As gRPC does: connections of an ended server do not count.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(fd, where.ai_addr, where.ai_addrlen) != 0 || listen(fd, 1) != 0) {
    error = errno;
  }
  close(fd);
  return error;
}

}  // namespace

absl::StatusOr<std::string> ChooseListenAddress(
    absl::string_view cluster_address, absl::string_view bind,
    bool allow_insecure_network) {
  const std::string text(bind.empty() ? cluster_address : bind);
  const absl::StatusOr<Address> address = ParseListenAddress(text);
  RETURN_IF_ERROR(
      Annotate(address.status(), absl::StrCat("listen on '", text, "'")));
  RETURN_IF_ERROR(
      CheckReach("listen on", text, *address, allow_insecure_network));
  return text;
}

absl::Status CheckConnectAddress(absl::string_view address,
                                 bool allow_insecure_network) {
  ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  return CheckReach("connect to", address, parsed, allow_insecure_network);
}

absl::Status TryListen(absl::string_view address) {
  ASSIGN_OR_RETURN(const Address parsed, ParseListenAddress(address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int lookup = getaddrinfo(
      parsed.host.c_str(), absl::StrCat(parsed.port).c_str(), &hints, &found);
  if (lookup != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "listen on ", address, ": no such host: ", gai_strerror(lookup)));
  }
  // All of a name's addresses: gRPC would be content with one of them, and
  // half of the peers would talk to whoever holds the other.
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int result = TryBind(*one);
    if (error == EADDRNOTAVAIL || result == EADDRINUSE) error = result;
    if (error == EADDRINUSE) break;
  }
  freeaddrinfo(found);
  if (error == 0) return absl::OkStatus();
  const std::string message =
      absl::StrCat("listen on ", address, ": ", std::strerror(error));
  if (error == EADDRINUSE) {
    return absl::UnavailableError(
        absl::StrCat(message, "; `ss -ltnp` shows who holds the port"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      message, "; is it an address of this machine? --bind gives another"));
}

}  // namespace muster
