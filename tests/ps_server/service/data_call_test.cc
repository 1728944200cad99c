#include "ps_server/service/data_call.h"

#include <vector>

#include "common/rpc/frame/frame_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/ps_server/shard/row_shard.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

// A server with a READY model of the table "user" of rows [1], first zeros.
class DataCallTest : public testing::Test {
 protected:
  DataCallTest() : server_(Options(&clock_)) {
    TableDef table = MakeTable("user", 1);
    table.set_initial(ZEROS);
    Call(kHelloCall, MakeHello(chief_));
    Call(kDefineCall, MakeDefineTables(chief_, {table}));
    Call(kSealCall, MakeSeal(chief_));
  }

  static ShardServer::Options Options(const Clock* clock) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.clock = clock;
    return options;
  }
  template <typename M>
  void Call(const M& method, const typename M::Request& request) {
    EXPECT_THAT(AwaitCall(server_, method, request, absl::InfiniteFuture()),
                IsOk());
  }

  // Sends a frame as it comes over gRPC.
  template <typename Reply, typename Header>
  absl::StatusOr<Frame<Reply>> Pass(DataMethod method,
                                    const Frame<Header>& request) {
    absl::StatusOr<grpc::ByteBuffer> answer = absl::InternalError("none");
    PassDataCall({&server_, &values_}, method,
                 EncodeFrame(request.header, request.data), CallCheck(),
                 absl::InfiniteFuture(),
                 [&answer](auto bytes) { answer = std::move(bytes); });
    if (!answer.ok()) return answer.status();
    return DecodeFrame<Reply>(*answer);
  }

  const Sender chief_ = MakeSender(0, 100);
  const MonotonicClock clock_;
  BufferPool values_;
  ShardServer server_;
};

TEST_F(DataCallTest, RowsThatWerePushed_ArePulled) {
  const auto push = MakeRowPush(chief_, 1, {{"user", {8, 9}, {-1, -2}}});
  ASSERT_THAT(Pass<PushReply>(DataMethod::kPush, push), IsOk());
  const auto pull = MakePullRows(chief_, {{"user", {9, 7, 8, 9}, {}}});
  const auto passed = Pass<PullRowsReply>(DataMethod::kPullRows, pull);
  ASSERT_THAT(passed, IsOk());
  EXPECT_THAT(ValuesOf<float>(passed->data), ElementsAre(2, 0, 1, 2));
  EXPECT_EQ(passed->header.version(), 1);
  const auto direct = AwaitReply<Frame<PullRowsReply>>(
      [&](ReplyCallback<Frame<PullRowsReply>> done) {
        server_.PullRows(pull, absl::InfiniteFuture(), std::move(done));
      });
  ASSERT_THAT(direct, IsOk());
  EXPECT_EQ(direct->data, passed->data);
}

TEST_F(DataCallTest, BytesThatAreNoFrame_AreRefused) {
  absl::Status status;
  const grpc::Slice slice("\xFF\xFF\xFF");
  PassDataCall({&server_, &values_}, DataMethod::kPullRows,
               grpc::ByteBuffer(&slice, 1), CallCheck(), absl::InfiniteFuture(),
               [&status](const auto& answer) { status = answer.status(); });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
