#include "ps_server/caller/cluster_check.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Two ps tasks and two workers.
ClusterDef TestCluster() {
  ClusterDef cluster;
  JobDef* const ps = cluster.add_job();
  ps->set_name("ps");
  (*ps->mutable_tasks())[0] = "h0:1";
  (*ps->mutable_tasks())[1] = "h1:1";
  JobDef* const worker = cluster.add_job();
  worker->set_name("worker");
  (*worker->mutable_tasks())[0] = "w0:1";
  (*worker->mutable_tasks())[1] = "w1:1";
  return cluster;
}

HelloRequest GoodHello() {
  HelloRequest request = MakeHello(MakeSender(1, 5));
  request.set_sender_address("w1:1");
  (*request.mutable_ps_addresses())[0] = "h0:1";
  (*request.mutable_ps_addresses())[1] = "h1:1";
  request.set_ps_index(1);
  return request;
}

absl::Status Check(const std::function<void(HelloRequest&)>& spoil) {
  HelloRequest request = GoodHello();
  spoil(request);
  return CheckHello(request, TestCluster(), /*ps_index=*/1);
}

TEST(ClusterCheckTest, AcceptsTheSameCluster) {
  EXPECT_THAT(Check([](HelloRequest&) {}), IsOk());
}

TEST(ClusterCheckTest, AnotherProtocol_IsNamedWithBothVersionsAndWhatToDo) {
  for (const int32_t other : {kProtocolVersion - 1, kProtocolVersion + 1}) {
    EXPECT_THAT(
        Check([other](HelloRequest& r) {
          r.set_protocol_version(other);
          r.set_muster_version("0.0.9");
        }),
        StatusIs(
            absl::StatusCode::kFailedPrecondition,
            absl::StrCat("Hello from /job:worker/task:1: it speaks protocol ",
                         other, " (version '0.0.9'), this ps speaks protocol ",
                         kProtocolVersion, " (version '", kMusterVersion,
                         "'); stop the job, and start it with one version "
                         "everywhere: it goes on from its checkpoint")));
  }
}

TEST(ClusterCheckTest, NamesTheFirstDifference) {
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(
      Check([](HelloRequest& r) { (*r.mutable_ps_addresses())[0] = "x:1"; }),
      StatusIs(kInvalid, HasSubstr("/job:ps/task:0 is 'x:1' to the caller and "
                                   "'h0:1' to this ps")));
  EXPECT_THAT(
      Check([](HelloRequest& r) { (*r.mutable_ps_addresses())[2] = "x:1"; }),
      StatusIs(kInvalid, HasSubstr("nothing to this ps")));
  EXPECT_THAT(
      Check([](HelloRequest& r) { r.mutable_ps_addresses()->erase(1); }),
      StatusIs(kInvalid, HasSubstr("nothing to the caller")));
  EXPECT_THAT(Check([](HelloRequest& r) { r.set_ps_index(0); }),
              StatusIs(kInvalid, HasSubstr("wants /job:ps/task:0")));
  EXPECT_THAT(Check([](HelloRequest& r) { r.set_sender_address("w0:1"); }),
              StatusIs(kInvalid, HasSubstr("/job:worker/task:1 is 'w0:1'")));
  EXPECT_THAT(Check([](HelloRequest& r) {
                r.mutable_sender()->mutable_task()->set_index(2);
              }),
              StatusIs(kInvalid, HasSubstr("/job:worker/task:2 is 'w1:1'")));
}

TEST(ClusterCheckTest, BelievesAJobThatThisPsDoesNotList) {
  EXPECT_THAT(Check([](HelloRequest& r) {
                r.mutable_sender()->mutable_task()->set_job("chief");
                r.set_sender_address("c:1");
              }),
              IsOk());
}

TEST(ClusterCheckTest, StandaloneHasNothingToCompare) {
  EXPECT_THAT(CheckHello(MakeHello(MakeSender(0, 1)), ClusterDef(), 0), IsOk());
}

}  // namespace
}  // namespace muster
