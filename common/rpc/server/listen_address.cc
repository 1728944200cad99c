#include "common/rpc/server/listen_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/address.h"
#include "common/cluster/task_id.h"

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
      ": it is on the network, and without --certs_dir there is neither "
      "encryption nor authentication. Three ways out: --certs_dir with keys "
      "of `muster certs`; a cluster on one machine (localhost addresses, or "
      "--bind=localhost:PORT behind a tunnel of your own); or, on a network "
      "where you trust everybody, --allow_insecure_network"));
}

// An address as the system has it.
struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};

in_port_t& PortOf(SocketAddress& address) {
  return address.bytes.ss_family == AF_INET6
             ? reinterpret_cast<sockaddr_in6&>(address.bytes).sin6_port
             : reinterpret_cast<sockaddr_in&>(address.bytes).sin_port;
}

SocketAddress FromInfo(const addrinfo& info) {
  SocketAddress address;
  address.size = info.ai_addrlen;
  std::memcpy(&address.bytes, info.ai_addr, info.ai_addrlen);
  return address;
}

// All that a name stands for, each once (/etc/hosts may name one twice).
absl::StatusOr<std::vector<SocketAddress>> Resolve(absl::string_view address) {
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
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const SocketAddress next = FromInfo(*one);
    const bool known = absl::c_any_of(addresses, [&](const auto& other) {
      return std::memcmp(&other.bytes, &next.bytes, sizeof(next.bytes)) == 0;
    });
    if (!known) addresses.push_back(next);
  }
  freeaddrinfo(found);
  return addresses;
}

// As gRPC has it for a server with a keepalive: what is sent and not
// acknowledged for so long ends the connection.
constexpr int kUserTimeoutMs = 10000;

void SetOption(const FileDescriptor& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof(value));
}

// A listening socket, or none and errno. Accepted ones inherit its options.
FileDescriptor ListenAt(const SocketAddress& where) {
  FileDescriptor socket(::socket(
      where.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  // Connections of an ended server do not count.
  SetOption(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  if (where.bytes.ss_family == AF_INET6) {
    SetOption(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&where.bytes),
           where.size) == 0 &&
      listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  const int error = errno;
  socket = FileDescriptor();
  errno = error;
  return socket;
}

// Some, and each of this machine alone.
bool AreLoopback(const std::vector<std::string>& numbers) {
  return !numbers.empty() &&
         absl::c_all_of(numbers, [](const std::string& number) {
           return IsLoopback({number});
         });
}

// The first task on another host, "/job:worker/task:0 is h1:1"; "" if all are
// on this machine: at one of its `own` names, or at loopback.
absl::StatusOr<std::string> TaskElsewhere(
    const ClusterSpec& cluster, const std::vector<std::string>& own,
    absl::FunctionRef<std::vector<std::string>(const std::string&)> look_up) {
  for (const char* const job : {kPsJob, kChiefJob, kWorkerJob, kEvaluatorJob}) {
    for (const auto& [index, text] : cluster.tasks(job)) {
      ASSIGN_OR_RETURN(const Address other, ParseAddress(text));
      const bool is_here =
          absl::c_any_of(own, [&other](const std::string& host) {
            return absl::EqualsIgnoreCase(host, other.host);
          });
      if (is_here || AreLoopback(look_up(other.host))) continue;
      return absl::StrCat(TaskName(MakeTaskId(job, index)), " is ", text);
    }
  }
  return "";
}

in_port_t BoundPort(const FileDescriptor& socket) {
  SocketAddress address;
  address.size = sizeof(address.bytes);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes),
              &address.size);
  return PortOf(address);
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

std::vector<std::string> LookUpHost(const std::string& host) {
  std::vector<std::string> numbers;
  // Its port does not matter.
  const auto found = Resolve(absl::StrCat(
      absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host,
      ":1"));
  if (!found.ok()) return numbers;
  for (const SocketAddress& address : *found) {
    char number[NI_MAXHOST];
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&address.bytes),
                    address.size, number, sizeof(number), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      numbers.emplace_back(number);
    }
  }
  return numbers;
}

absl::Status CheckOthersCanCome(
    const ClusterSpec& cluster, const TaskId& task, absl::string_view bind,
    const Reporter& reporter,
    absl::FunctionRef<std::vector<std::string>(const std::string&)> look_up) {
  const auto own = cluster.AddressOf(task);
  // To an evaluator that is not listed nobody has to come.
  if (!own.ok()) return bind.empty() ? own.status() : absl::OkStatus();
  ASSIGN_OR_RETURN(const Address listed, ParseAddress(*own));
  const std::string text(bind.empty() ? *own : bind);
  ASSIGN_OR_RETURN(const Address address, ParseListenAddress(text));
  const std::vector<std::string> numbers = look_up(address.host);
  if (!AreLoopback(numbers)) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::string other,
      TaskElsewhere(cluster, {listed.host, address.host}, look_up));
  if (other.empty()) return absl::OkStatus();
  if (IsLoopback(address)) {
    reporter.Info(absl::StrCat("listening on ", text, ", this machine alone; ",
                               other, ", which comes through a tunnel only"));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "listen on ", text, ": ", address.host, " means ",
      absl::StrJoin(numbers, ", "),
      " here, where no other host can connect, and ", other, ". Give ",
      address.host,
      " in /etc/hosts the address by which the others reach this host "
      "(Debian writes 127.0.1.1 there), or listen at that address by "
      "--bind=ADDRESS:",
      address.port));
}

absl::StatusOr<ListeningSockets> ListenOn(absl::string_view address) {
  ASSIGN_OR_RETURN(std::vector<SocketAddress> places, Resolve(address));
  // All of a name's addresses, or half of the peers would talk to whoever holds
  // the other.
  ListeningSockets listening;
  int error = 0;
  for (SocketAddress& place : places) {
    // Port 0: the first one's.
    if (listening.port != 0) PortOf(place) = htons(listening.port);
    FileDescriptor socket = ListenAt(place);
    if (!socket.valid()) {
      if (error != EADDRINUSE) error = errno;
      continue;
    }
    listening.port = ntohs(BoundPort(socket));
    listening.sockets.push_back(std::move(socket));
  }
  if (error != EADDRINUSE && !listening.sockets.empty()) return listening;
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
