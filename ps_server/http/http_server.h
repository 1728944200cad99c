#ifndef PS_SERVER_HTTP_HTTP_SERVER_H_
#define PS_SERVER_HTTP_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/socket_loop.h"
#include "ps_server/http/http_connection.h"
#include "ps_server/http/http_pages.h"
#include "ps_server/http/looker.h"

namespace muster {

// The HTTP side of a ps task, for people and for Prometheus: one thread, and at
// most kMostConnections, whatever comes. README.md says what it answers.
// Used by one thread.
class HttpServer {
 public:
  // With one more the oldest ends that has not said what it wants, else the
  // oldest.
  static constexpr size_t kMostConnections = 64;

  struct Options {
    // "127.0.0.1:9180", which it may listen on; port 0: any free one.
    std::string address;
    HttpPages::Options pages;
    // Looker::Ask; outlives the server.
    std::function<void(Looker::Reach, Looker::Done)> ask;
    // The channel over an accepted socket: plain, or TLS.
    std::function<absl::StatusOr<std::unique_ptr<ByteChannel>>(FileDescriptor)>
        open;
    // Whether the holder of a certificate, "" where there is none, may look.
    std::function<bool(absl::string_view pem)> may_look;
    // Outlives the server.
    const Clock* clock = nullptr;
  };

  // Errors: those of ListenOn; ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  // Frees the port and ends every connection.
  ~HttpServer();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  // Accepts at one socket.
  class Acceptor;

  HttpServer(Options options, int port, std::shared_ptr<SocketLoop> loop);

  void Add(FileDescriptor socket);
  void MakeRoom();

  const Options options_;
  const int port_;
  const std::shared_ptr<SocketLoop> loop_;

  // Used by the loop's thread, which has them; the oldest first.
  HttpPages pages_;
  std::vector<std::weak_ptr<HttpConnection>> connections_;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // PS_SERVER_HTTP_HTTP_SERVER_H_
