#include "common/rpc/buffer_quota.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/deadline.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr size_t kQuotaBytes = 16 << 20;
// Above it, and below what gRPC alone takes: twice as much.
constexpr size_t kTooMuch = 24 << 20;
constexpr absl::Duration kPatience = absl::Seconds(20);

// Keeps each message, and answers when the caller gives up or is given up.
class Keeper : public grpc::ServerGenericBidiReactor {
 public:
  Keeper() { StartRead(&message_); }
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class BufferQuotaTest : public testing::Test,
                        private grpc::CallbackGenericService {
 protected:
  BufferQuotaTest() : quota_(kQuotaBytes, /*max_threads=*/8) {
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(quota_.quota());
    builder.SetMaxReceiveMessageSize(-1);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  ~BufferQuotaTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  // A call with one message, which is not answered.
  void Send(size_t bytes) {
    const grpc::Slice slice(std::string(bytes, 'x'));
    message_ = grpc::ByteBuffer(&slice, 1);
    context_.set_deadline(ToGrpcDeadline(SystemClock()->Now() + kPatience));
    stub_->UnaryCall(&context_, "/test/Keep", grpc::StubOptions(), &message_,
                     &reply_, [this](const grpc::Status& status) {
                       status_ = status;
                       ended_.Notify();
                     });
  }

  grpc::ClientContext context_;
  grpc::Status status_;
  absl::Notification ended_;

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Keeper();
  }

  BufferQuota quota_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer reply_;
};

TEST_F(BufferQuotaTest, EndsACallThatHoldsMore) {
  Send(kTooMuch);
  ended_.WaitForNotification();
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status_.error_message();
}

}  // namespace
}  // namespace muster
