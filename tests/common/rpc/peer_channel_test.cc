#include "common/rpc/peer_channel.h"

#include <memory>

#include "absl/status/status.h"
#include "common/rpc/credentials.h"
#include "common/rpc/server/unknown_calls.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback_server.h"

namespace muster {
namespace {

const absl::Status kLate = absl::DeadlineExceededError("no answer");

class PeerChannelTest : public testing::Test {
 protected:
  // A channel to the server, which is connected.
  std::shared_ptr<grpc::Channel> Connected() {
    std::shared_ptr<grpc::Channel> channel = channel_.Get();
    EXPECT_TRUE(channel->WaitForConnected(gpr_inf_future(GPR_CLOCK_REALTIME)));
    return channel;
  }

  UnknownCalls service_{"a test"};
  LoopbackServer server_{[this](grpc::ServerBuilder* builder) {
    builder->RegisterCallbackGenericService(&service_);
  }};
  PeerChannel channel_{PeerChannel::Opener(
      server_.address(), InsecureCredentials().channel_to("ps", 0))};
};

TEST_F(PeerChannelTest, LeavesAConnectionThatAnswersNoCall) {
  const auto deaf = Connected();
  channel_.OnFailure(deaf, kLate);
  const auto other = channel_.Get();
  EXPECT_NE(other, deaf);
  // Another call on the first one, later.
  channel_.OnFailure(deaf, kLate);
  EXPECT_EQ(channel_.Get(), other);
}

TEST_F(PeerChannelTest, StaysWhileItConnectsAndAfterOtherErrors) {
  const auto channel = channel_.Get();
  channel_.OnFailure(channel, kLate);
  EXPECT_EQ(channel_.Get(), channel);
  Connected();
  channel_.OnFailure(channel, absl::UnavailableError("busy"));
  EXPECT_EQ(channel_.Get(), channel);
}

}  // namespace
}  // namespace muster
