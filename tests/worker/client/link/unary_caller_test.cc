#include "worker/client/link/unary_caller.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/base/clock.h"
#include "common/rpc/peer_channel.h"
#include "common/rpc/protocol.h"
#include "common/rpc/server/listen_address.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

// Nothing listens there, and nothing answers.
constexpr char kAddress[] = "127.0.0.1:1";

// A gRPC thread that drops the last reference to the last channel aborts the
// process (seen one time in 40 at the end of a worker): whoever made the caller
// must be left with the only one.
TEST(UnaryCallerTest, NoCallHoldsTheChannelWhenTheCallerIsGone) {
  constexpr int kRepeats = 1000;
  constexpr int kCalls = 4;
  const auto channel =
      grpc::CreateChannel(kAddress, grpc::InsecureChannelCredentials());
  for (int i = 0; i < kRepeats; ++i) {
    {
      UnaryCaller caller({"/job:ps/task:0", kAddress},
                         [channel] { return channel; });
      for (int call = 0; call < kCalls; ++call) {
        const grpc::Slice slice("request");
        caller.Call("/muster.CoordinationService/Watch",
                    grpc::ByteBuffer(&slice, 1),
                    MonotonicClock().Now() + absl::Seconds(20),
                    [](const absl::StatusOr<grpc::ByteBuffer>&) {});
      }
    }
    ASSERT_EQ(channel.use_count(), 1) << "after repeat " << i;
  }
}

constexpr char kWatch[] = "/muster.CoordinationService/Watch";

grpc::ByteBuffer Request() {
  const grpc::Slice slice("request");
  return grpc::ByteBuffer(&slice, 1);
}

// A call that was refused is made again by its callback (Link::Call).
TEST(UnaryCallerTest, ACallOfACallbackAtItsEndIsCancelledAtOnce) {
  absl::Status last;
  {
    // Who connects there waits.
    const ListeningSockets silent = *ListenOn("127.0.0.1:0");
    const std::string address = absl::StrCat("127.0.0.1:", silent.port);
    const auto channel =
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    UnaryCaller caller({"/job:ps/task:0", address},
                       [channel] { return channel; });
    caller.Call(kWatch, Request(), absl::InfiniteFuture(),
                [&](const absl::StatusOr<grpc::ByteBuffer>&) {
                  caller.Call(
                      kWatch, Request(), absl::InfiniteFuture(),
                      [&last](const absl::StatusOr<grpc::ByteBuffer>& reply) {
                        last = reply.status();
                      });
                });
  }
  EXPECT_THAT(last, StatusIs(absl::StatusCode::kCancelled));
}

// Serves calls whose messages it never reads.
class UnreadService : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Unread;
  }

 private:
  class Unread : public grpc::ServerGenericBidiReactor {
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };
};

void CountDown(void* counter) {
  static_cast<absl::BlockingCounter*>(counter)->DecrementCount();
}

TEST(UnaryCallerTest, APeerThatNeverReadsKeepsNoMemoryOfTheCaller) {
  constexpr int kCalls = 16;
  UnreadService service;
  const LoopbackServer server([&service](grpc::ServerBuilder* builder) {
    builder->RegisterCallbackGenericService(&service);
  });
  const std::string memory(kMaxPartBytes, 'g');
  absl::BlockingCounter released(kCalls);
  absl::BlockingCounter answered(kCalls);
  UnaryCaller caller({"/job:ps/task:0", server.address()},
                     PeerChannel::Opener(server.address(),
                                         grpc::InsecureChannelCredentials()));
  for (int call = 0; call < kCalls; ++call) {
    const grpc::Slice slice(const_cast<char*>(memory.data()), memory.size(),
                            &CountDown, &released);
    caller.Call("/muster.ParameterService/Push", grpc::ByteBuffer(&slice, 1),
                MonotonicClock().Now() + absl::Milliseconds(200),
                [&](const absl::StatusOr<grpc::ByteBuffer>& reply) {
                  EXPECT_THAT(reply,
                              StatusIs(absl::StatusCode::kDeadlineExceeded));
                  answered.DecrementCount();
                });
  }
  answered.Wait();
  released.Wait();
}

}  // namespace
}  // namespace muster
