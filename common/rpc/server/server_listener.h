#ifndef COMMON_RPC_SERVER_SERVER_LISTENER_H_
#define COMMON_RPC_SERVER_SERVER_LISTENER_H_

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/reporter.h"
#include "common/rpc/server/fresh_connections.h"
#include "common/rpc/server/listen_address.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace muster {

// The entrance of a gRPC server's connections: holds the listening sockets, and
// a thread that accepts and hands each connection to the server. gRPC's own
// listener ends for good when a process is without file descriptors for a
// moment (README.md); this one tries again, and connections wait meanwhile.
//
//   ASSIGN_OR_RETURN(auto listener, ServerListener::Listen(address));
//   listener->AddTo(&builder, credentials);
//   auto server = builder.BuildAndStart();
//   listener->Start(clock, reporter);
//   ...
//   listener.reset();  // nobody comes in any more
//   server->Shutdown();
//
// Used by one thread.
class ServerListener {
 public:
  // Takes the port, for this process alone. Errors: those of ListenOn;
  // ResourceExhausted without descriptors.
  static absl::StatusOr<std::unique_ptr<ServerListener>> Listen(
      const std::string& address);
  // Stops accepting and frees the port. What was accepted is the server's.
  ~ServerListener();

  ServerListener(const ServerListener&) = delete;
  ServerListener& operator=(const ServerListener&) = delete;

  // The port that it listens on, for port 0.
  int port() const { return port_; }

  // Before the server is built. With another builder the first one's server
  // gets nothing.
  // `protocol`: that of the credentials; those who speak another one are said.
  void AddTo(grpc::ServerBuilder* builder,
             std::shared_ptr<grpc::ServerCredentials> credentials,
             Protocol protocol = Protocol::kAny);

  // Gives `take` the connections that begin as kTensorMagic does, non-blocking
  // and unread, instead of refusing them: on the accepting thread, until the
  // listener's destructor returns. `take` must not block. REQUIRES: Start has
  // not been called.
  void ServeTensors(std::function<void(FileDescriptor)> take) {
    take_tensors_ = std::move(take);
  }

  // Begins to accept. REQUIRES: the builder's server has started. `clock`
  // outlives the listener.
  void Start(const Clock* clock, Reporter reporter);

 private:
  ServerListener(ListeningSockets sockets, FileDescriptor stop);

  void Accept();
  // False after a stop.
  bool AwaitConnections(bool may_accept);
  // Takes one connection from each socket that has some, and those whose first
  // byte came. False if the system gave none.
  bool AcceptReady();
  bool AcceptOne(int socket);
  // Gives a connection to gRPC.
  void HandOver(FileDescriptor connection);
  // Once in a while: it may come again and again.
  void SayShortage(int error);

  const std::vector<FileDescriptor> sockets_;
  const int port_;
  // An eventfd.
  const FileDescriptor stop_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  const Clock* clock_ = nullptr;
  Reporter reporter_;

  Protocol protocol_ = Protocol::kAny;
  std::function<void(FileDescriptor)> take_tensors_;

  // The accepting thread's: first stop_, then the sockets, then fresh_.
  std::vector<pollfd> polls_;
  std::unique_ptr<FreshConnections> fresh_;
  absl::Time said_ = absl::InfinitePast();

  // Last: it uses all the others.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // COMMON_RPC_SERVER_SERVER_LISTENER_H_
