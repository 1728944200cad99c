#include "common/rpc/server/server_settings.h"

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/channel_settings.h"
#include "common/rpc/server/server_listener.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AnyOf;

// Answers Unimplemented to everything, and notes on which connections.
class Peers : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    {
      absl::MutexLock lock(&mu_);
      seen_.insert(context->peer());
    }
    return CallbackGenericService::CreateReactor(context);
  }
  size_t count() const {
    absl::MutexLock lock(&mu_);
    return seen_.size();
  }

 private:
  mutable absl::Mutex mu_;
  std::set<std::string> seen_ ABSL_GUARDED_BY(mu_);
};

// A call that begins just when the connection ends may be Unavailable, which
// every caller repeats; no call fails in another way.
TEST(ServerSettingsTest, AConnectionIsReplacedAtItsAge) {
  Peers peers;
  auto listener = ServerListener::Listen("127.0.0.1:0");
  ASSERT_THAT(listener, IsOk());
  grpc::ServerBuilder builder;
  ServerSettings settings;
  settings.max_connection_age = absl::Milliseconds(50);
  const std::unique_ptr<BufferQuota> buffers =
      ApplyServerSettings(settings, &builder);
  builder.RegisterCallbackGenericService(&peers);
  (*listener)->AddTo(&builder, grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  (*listener)->Start(SystemClock(), Reporter());
  const auto stub = ParameterService::NewStub(
      OpenChannel(absl::StrCat("127.0.0.1:", (*listener)->port()),
                  grpc::InsecureChannelCredentials()));
  while (peers.count() < 3) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    HelloReply reply;
    const grpc::Status status = stub->Hello(&context, HelloRequest(), &reply);
    ASSERT_THAT(status.error_code(), AnyOf(grpc::StatusCode::UNIMPLEMENTED,
                                           grpc::StatusCode::UNAVAILABLE))
        << status.error_message();
  }
  listener->reset();
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace muster
