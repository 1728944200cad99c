#ifndef TESTS_TESTING_LOOPBACK_SERVER_H_
#define TESTS_TESTING_LOOPBACK_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/buffer_quota.h"
#include "common/rpc/server/server_listener.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace muster {

// A gRPC server on a free loopback port, with the settings of a ps.
class LoopbackServer {
 public:
  // `add` registers what it serves; `take` gets connections for tensors, which
  // are refused without it. Both outlive this.
  explicit LoopbackServer(absl::FunctionRef<void(grpc::ServerBuilder*)> add,
                          std::function<void(FileDescriptor)> take = nullptr);
  ~LoopbackServer() { Stop(); }

  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  // "127.0.0.1:port"
  const std::string& address() const { return address_; }

  // Breaks every connection and returns when no call is left. Repeatable.
  void Stop();

 private:
  std::unique_ptr<BufferQuota> buffers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerListener> listener_;
  std::string address_;
};

}  // namespace muster

#endif  // TESTS_TESTING_LOOPBACK_SERVER_H_
