#include "worker/training/replication_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "google/protobuf/text_format.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

ReplicationSpec Parse(const std::string& text) {
  ReplicationSpec replication;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(text, &replication));
  return replication;
}

// Checked and fitted to `replicas`.
absl::Status Check(const std::string& text, int replicas) {
  ReplicationSpec replication = Parse(text);
  const absl::Status valid = ValidateReplication(replication);
  return valid.ok() ? FitReplication(replicas, &replication) : valid;
}

TEST(ReplicationSettingsTest, AcceptsEveryMode) {
  EXPECT_THAT(Check("async {}", 3), IsOk());
  EXPECT_THAT(Check("async { pipeline_depth: 1 }", 3), IsOk());
  EXPECT_THAT(Check("async { pipeline_depth: 2 }", 1), IsOk());
  EXPECT_THAT(Check("bounded_staleness { bound: 0 }", 3), IsOk());
  EXPECT_THAT(Check("bounded_staleness { bound: 10 }", 1), IsOk());
  EXPECT_THAT(Check("sync {}", 1), IsOk());
  EXPECT_THAT(Check("sync { replicas_to_aggregate: 2 total_replicas: 3 "
                    "min_replicas: 2 when_too_few: EXIT }",
                    3),
              IsOk());
}

TEST(ReplicationSettingsTest, FillsInWhatTheClusterHas) {
  ReplicationSpec replication = Parse("sync {}");
  ASSERT_THAT(FitReplication(3, &replication), IsOk());
  EXPECT_EQ(replication.sync().total_replicas(), 3);
  EXPECT_EQ(replication.sync().replicas_to_aggregate(), 3);
  EXPECT_EQ(replication.sync().min_replicas(), 1);
  ReplicationSpec async = Parse("async {}");
  ASSERT_THAT(FitReplication(3, &async), IsOk());
  EXPECT_TRUE(async.has_async());
}

TEST(ReplicationSettingsTest, WhereAnyWorkerComes_ItIsThoseThatAreThere) {
  ReplicationSpec replication = Parse("sync {}");
  ASSERT_THAT(FitReplication(/*replicas=*/0, &replication), IsOk());
  EXPECT_EQ(replication.sync().total_replicas(), 0);
  EXPECT_EQ(replication.sync().replicas_to_aggregate(), 0);
  EXPECT_EQ(replication.sync().min_replicas(), 1);
  EXPECT_EQ(DescribeReplication(replication),
            "sync, each step the mean of all replicas that are there, at "
            "least 1");
  replication = Parse("sync { replicas_to_aggregate: 4 min_replicas: 2 }");
  ASSERT_THAT(FitReplication(/*replicas=*/0, &replication), IsOk());
  EXPECT_EQ(DescribeReplication(replication),
            "sync, each step the mean of the first 4 of replicas that are "
            "there, at least 2");
  EXPECT_THAT(Check("sync { total_replicas: 2 }", 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("total_replicas is 2, but the cluster takes "
                                 "any worker: leave it out")));
  EXPECT_THAT(Check("sync { replicas_to_aggregate: 2 min_replicas: 3 }", 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("min_replicas must be at most")));
}

TEST(ReplicationSettingsTest, AllReduceIsSyncThatWaitsForAll) {
  ReplicationSpec replication = Parse("all_reduce {}");
  EXPECT_EQ(ReplicationName(replication), "all_reduce");
  EXPECT_THAT(ValidateReplication(replication), IsOk());
  ASSERT_THAT(FitReplication(3, &replication), IsOk());
  EXPECT_EQ(replication.sync().total_replicas(), 3);
  EXPECT_EQ(replication.sync().replicas_to_aggregate(), 3);
  EXPECT_EQ(replication.sync().min_replicas(), 3);
  EXPECT_EQ(replication.sync().when_too_few(), WAIT);
}

TEST(ReplicationSettingsTest, AllReduceGoesWithWorkersAlone) {
  ClusterDef def;
  (*def.add_job()->mutable_tasks())[0] = "w:1";
  def.mutable_job(0)->set_name("worker");
  const ClusterSpec workers = ClusterSpec::Create(def)->ForAllReduce().value();
  (*def.add_job()->mutable_tasks())[0] = "p:1";
  def.mutable_job(1)->set_name("ps");
  const ClusterSpec with_ps = ClusterSpec::Create(def).value();

  EXPECT_THAT(CheckReplicationSuits(workers, Parse("all_reduce {}")), IsOk());
  EXPECT_THAT(CheckReplicationSuits(with_ps, Parse("sync {}")), IsOk());
  EXPECT_THAT(CheckReplicationSuits(ClusterSpec(), Parse("async {}")), IsOk());
  EXPECT_THAT(CheckReplicationSuits(workers, Parse("async {}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("replication is async, which wants ps tasks, "
                                 "but the cluster has none")));
  EXPECT_THAT(
      CheckReplicationSuits(with_ps, Parse("all_reduce {}")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("but the cluster has ps tasks (ps 1, worker 1)")));
  EXPECT_THAT(CheckReplicationSuits(ClusterSpec(), Parse("all_reduce {}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--standalone has no other worker")));
}

TEST(ReplicationSettingsTest, NamesWhatIsWrong) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  for (const Case& c : {
           Case{"async { pipeline_depth: 3 }",
                "replication.async.pipeline_depth must be 1 or 2, found 3: a "
                "worker begins to push a step only when the one before it is "
                "done"},
           Case{"async { pipeline_depth: -1 }", "must be 1 or 2, found -1"},
           Case{"async { pull: 7 }",
                "replication.async.pull must be CONSISTENT or IN_PLACE, found "
                "7"},
           Case{"bounded_staleness { bound: -1 }",
                "replication.bounded_staleness.bound must be 0 or more, found "
                "-1"},
           Case{"sync { replicas_to_aggregate: -1 }",
                "replication.sync.replicas_to_aggregate must be 0 or more"},
           Case{"sync { min_replicas: -2 }",
                "replication.sync.min_replicas must be 0 or more, found -2"},
           Case{"sync { total_replicas: -2 }",
                "replication.sync.total_replicas must be 0 or more"},
           Case{"sync { replicas_to_aggregate: 4 total_replicas: 3 }",
                "replication.sync.replicas_to_aggregate must be at most "
                "replication.sync.total_replicas, which is 3, found 4"},
           Case{"sync { replicas_to_aggregate: 4 }",
                "replicas_to_aggregate must be at most "
                "replication.sync.total_replicas, which is 3, found 4"},
           Case{"sync { total_replicas: 2 }",
                "total_replicas is 2, but the cluster has 3 tasks that train"},
           Case{"sync { min_replicas: 3 replicas_to_aggregate: 2 }",
                "min_replicas must be at most "
                "replication.sync.replicas_to_aggregate, which is 2, found 3"},
           Case{"sync { min_replicas: 4 }",
                "min_replicas must be at most replication.sync.total_replicas, "
                "which is 3, found 4"},
       }) {
    EXPECT_THAT(Check(c.text, 3), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr(c.wanted)))
        << c.text;
  }
}

TEST(ReplicationSettingsTest, TellsTheModesNumbers) {
  EXPECT_THAT(ReplicationNumbers(Parse("async {}")), IsEmpty());
  EXPECT_THAT(ReplicationNumbers(Parse("async { pipeline_depth: 2 }")),
              ElementsAre(Pair("pipeline_depth", 2)));
  EXPECT_THAT(ReplicationNumbers(Parse("async { pull: IN_PLACE }")),
              ElementsAre(Pair("pull_in_place", 1)));
  EXPECT_THAT(ReplicationNumbers(Parse("bounded_staleness { bound: 3 }")),
              ElementsAre(Pair("bound", 3)));
  ReplicationSpec sync = Parse("sync { replicas_to_aggregate: 2 }");
  ASSERT_THAT(FitReplication(3, &sync), IsOk());
  EXPECT_THAT(
      ReplicationNumbers(sync),
      ElementsAre(Pair("min_replicas", 1), Pair("replicas_to_aggregate", 2),
                  Pair("total_replicas", 3)));
}

TEST(ReplicationSettingsTest, DescribesTheMode) {
  ReplicationSpec sync = Parse("sync { replicas_to_aggregate: 2 }");
  ASSERT_THAT(FitReplication(3, &sync), IsOk());
  EXPECT_EQ(DescribeReplication(sync),
            "sync, each step the mean of the first 2 of 3 replicas");
  EXPECT_EQ(DescribeReplication(Parse("bounded_staleness { bound: 3 }")),
            "bounded_staleness, no worker more than 3 steps ahead of the "
            "slowest");
  EXPECT_EQ(DescribeReplication(ReplicationSpec()), "async");
  EXPECT_THAT(DescribeReplication(Parse("async { pipeline_depth: 2 }")),
              HasSubstr("while the one before it is pushed"));
  EXPECT_EQ(DescribeReplication(Parse("async { pull: IN_PLACE }")),
            "async, parameters read where the ps changes them (pull: "
            "IN_PLACE)");
}

}  // namespace
}  // namespace muster
