#include "tests/testing/loopback_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/server/server_settings.h"
#include "grpcpp/security/server_credentials.h"

namespace muster {

LoopbackServer::LoopbackServer(
    absl::FunctionRef<void(grpc::ServerBuilder*)> add,
    std::function<void(FileDescriptor)> take) {
  grpc::ServerBuilder builder;
  buffers_ = ApplyServerSettings({}, &builder);
  listener_ = *ServerListener::Listen("127.0.0.1:0");
  listener_->AddTo(&builder, grpc::InsecureServerCredentials());
  add(&builder);
  server_ = builder.BuildAndStart();
  if (take) listener_->ServeTensors(std::move(take));
  listener_->Start(SystemClock(), Reporter());
  address_ = absl::StrCat("127.0.0.1:", listener_->port());
}

void LoopbackServer::Stop() {
  if (server_ == nullptr) return;
  listener_.reset();
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace muster
