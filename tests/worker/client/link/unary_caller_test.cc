#include "worker/client/link/unary_caller.h"

#include <memory>

#include "common/base/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace muster
