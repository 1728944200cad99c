#include "tests/testing/loopback_server.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/rpc/server_settings.h"
#include "grpcpp/security/server_credentials.h"

namespace muster {

LoopbackServer::LoopbackServer(
    absl::FunctionRef<void(grpc::ServerBuilder*)> add) {
  grpc::ServerBuilder builder;
  buffers_ = ApplyServerSettings({}, &builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  add(&builder);
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

void LoopbackServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace muster
