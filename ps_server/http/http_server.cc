#include "ps_server/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "common/rpc/server/listen_address.h"

namespace muster {

class HttpServer::Acceptor : public SocketHandler {
 public:
  Acceptor(FileDescriptor socket, HttpServer* server)
      : socket_(std::move(socket)), server_(server) {}

  int fd() const override { return socket_.get(); }
  Interest Proceed() override {
    Interest interest;
    // A few, then others have their turn.
    for (size_t i = 0; i < kMostConnections; ++i) {
      const int fd = accept4(socket_.get(), nullptr, nullptr,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        server_->Add(FileDescriptor(fd));
      } else if (errno != EINTR && errno != ECONNABORTED) {
        // Without descriptors it is tried again at the loop's next tick: asked
        // for its socket, it would have a turn all the time.
        interest.receive = errno == EAGAIN;
        return interest;
      }
    }
    interest.receive = true;
    return interest;
  }

 private:
  const FileDescriptor socket_;
  HttpServer* const server_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  ASSIGN_OR_RETURN(ListeningSockets listening, ListenOn(options.address));
  ASSIGN_OR_RETURN(std::shared_ptr<SocketLoop> loop, SocketLoop::Create());
  auto server = std::unique_ptr<HttpServer>(
      new HttpServer(std::move(options), listening.port, loop));
  for (FileDescriptor& socket : listening.sockets) {
    loop->Add(std::make_shared<Acceptor>(std::move(socket), server.get()));
  }
  server->thread_ =
      server->options_.clock->StartThread([loop] { loop->Run(); });
  return server;
}

HttpServer::HttpServer(Options options, int port,
                       std::shared_ptr<SocketLoop> loop)
    : options_(std::move(options)),
      port_(port),
      loop_(std::move(loop)),
      pages_(options_.pages) {}

HttpServer::~HttpServer() {
  loop_->Stop();
  thread_.reset();
}

void HttpServer::Add(FileDescriptor socket) {
  MakeRoom();
  absl::StatusOr<std::unique_ptr<ByteChannel>> channel =
      options_.open(std::move(socket));
  if (!channel.ok()) return;
  HttpConnection::Parts parts;
  parts.pages = &pages_;
  parts.ask = &options_.ask;
  parts.may_look = &options_.may_look;
  parts.clock = options_.clock;
  parts.loop = loop_;
  const auto connection =
      std::make_shared<HttpConnection>(std::move(parts), *std::move(channel));
  connections_.push_back(connection);
  loop_->Add(connection);
}

void HttpServer::MakeRoom() {
  connections_.erase(
      std::remove_if(connections_.begin(), connections_.end(),
                     [](const auto& one) { return one.expired(); }),
      connections_.end());
  if (connections_.size() < kMostConnections) return;
  auto oldest = absl::c_find_if(
      connections_, [](const auto& one) { return one.lock()->is_reading(); });
  if (oldest == connections_.end()) oldest = connections_.begin();
  oldest->lock()->End();
  connections_.erase(oldest);
}

}  // namespace muster
