#ifndef TESTS_WORKER_CLIENT_LINK_FRAME_SERVER_H_
#define TESTS_WORKER_CLIENT_LINK_FRAME_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "tests/testing/loopback_server.h"

namespace muster {

// A LoopbackServer that answers every unary method through one function over
// bytes.
class FrameServer {
 public:
  // Called on gRPC threads with the method's path.
  using Handler = std::function<absl::StatusOr<grpc::ByteBuffer>(
      const std::string& method, const grpc::ByteBuffer& request)>;

  explicit FrameServer(Handler handler);
  ~FrameServer();

  // "127.0.0.1:port"
  const std::string& address() const { return server_.address(); }

 private:
  class Service;

  std::unique_ptr<Service> service_;
  LoopbackServer server_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CLIENT_LINK_FRAME_SERVER_H_
