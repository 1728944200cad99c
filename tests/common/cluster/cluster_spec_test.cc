#include "common/cluster/cluster_spec.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_text.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterSpec Parse(const std::string& text) {
  auto spec = ParseClusterText(text, "test");
  EXPECT_THAT(spec, IsOk());
  return spec.value_or(ClusterSpec());
}

constexpr char kTwoAndTwo[] =
    "job { name: 'ps' tasks { key: 0 value: 'p0:1' }"
    "                 tasks { key: 1 value: 'p1:1' } }"
    "job { name: 'worker' tasks { key: 0 value: 'w0:1' }"
    "                     tasks { key: 3 value: 'w3:1' } }";

TEST(ClusterSpecTest, AnswersForItsTasks) {
  const ClusterSpec spec = Parse(kTwoAndTwo);
  EXPECT_FALSE(spec.empty());
  EXPECT_EQ(spec.num_tasks(), 4);
  EXPECT_EQ(spec.num_ps(), 2);
  EXPECT_THAT(spec.ps_addresses(), ElementsAre("p0:1", "p1:1"));
  EXPECT_THAT(spec.AddressOf(MakeTaskId("worker", 3)),
              IsOkAndHolds(std::string("w3:1")));
  EXPECT_EQ(spec.Summary(), "ps 2, worker 2");
  EXPECT_TRUE(spec.tasks("evaluator").empty());
}

TEST(ClusterSpecTest, AHostWithAFinalDotIsTheHostWithoutIt) {
  const ClusterSpec spec = Parse(
      "job { name: 'ps' tasks { key: 0 value: 'p.example.:1' } }"
      "job { name: 'worker' tasks { key: 0 value: '[::1]:2' } }");
  EXPECT_THAT(spec.ps_addresses(), ElementsAre("p.example:1"));
  EXPECT_THAT(
      ParseClusterText("job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
                       "job { name: 'worker' tasks { key: 0 value: 'p.:1' } }",
                       "test"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("duplicate address 'p:1'")));
}

TEST(ClusterSpecTest, NamesTheTasksThereAreWhenOneIsMissing) {
  const ClusterSpec spec = Parse(kTwoAndTwo);
  EXPECT_THAT(spec.AddressOf(MakeTaskId("worker", 2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/job:worker/task:2"),
                             HasSubstr("indices 0, 3"))));
  EXPECT_THAT(
      spec.AddressOf(MakeTaskId("chief", 0)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no tasks")));
}

TEST(ClusterSpecTest, WorkerZeroIsChiefUnlessThereIsAChiefJob) {
  const ClusterSpec spec = Parse(kTwoAndTwo);
  EXPECT_EQ(TaskName(spec.chief()), "/job:worker/task:0");
  EXPECT_EQ(spec.training_tasks().size(), 2);
  for (const char* job : {"chief", "master", "coordinator"}) {
    const ClusterSpec with_chief = Parse(absl::StrCat(
        kTwoAndTwo, "job { name: '", job, "' tasks { key: 0 value: 'c:1' } }"));
    EXPECT_EQ(TaskName(with_chief.chief()), "/job:chief/task:0");
    EXPECT_EQ(with_chief.training_tasks().size(), 3);
  }
}

TEST(ClusterSpecTest, AnEmptyDefIsStandalone) {
  const auto spec = ClusterSpec::Create(ClusterDef());
  ASSERT_THAT(spec, IsOk());
  EXPECT_TRUE(spec->empty());
  EXPECT_EQ(spec->Summary(), "standalone");
}

TEST(ClusterSpecTest, AllReduceMakesAPsOfEachTaskThatTrains) {
  const ClusterSpec workers = Parse(
      "job { name: 'worker' tasks { key: 0 value: 'w0:1' }"
      "                     tasks { key: 1 value: 'w1:1' } }"
      "job { name: 'evaluator' tasks { key: 0 value: 'e:1' } }");
  EXPECT_FALSE(workers.is_all_reduce());
  const auto spec = workers.ForAllReduce();
  ASSERT_THAT(spec, IsOk());
  EXPECT_TRUE(spec->is_all_reduce());
  EXPECT_THAT(spec->ps_addresses(), ElementsAre("w0:1", "w1:1"));
  EXPECT_EQ(spec->ShardOf(MakeTaskId("worker", 1)), 1);
  EXPECT_EQ(spec->ShardOf(MakeTaskId("evaluator", 0)), std::nullopt);
  EXPECT_EQ(spec->ShardOf(MakeTaskId("worker", 2)), std::nullopt);
  EXPECT_EQ(spec->Summary(), "all-reduce, worker 2, evaluator 1");
  EXPECT_EQ(Parse(kTwoAndTwo).ShardOf(MakeTaskId("worker", 1)), std::nullopt);
}

TEST(ClusterSpecTest, AllReduceCountsTheChiefFirst) {
  const auto spec = Parse(
                        "job { name: 'worker' tasks { key: 0 value: 'w:1' } }"
                        "job { name: 'chief' tasks { key: 0 value: 'c:1' } }")
                        .ForAllReduce();
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(spec->ps_addresses(), ElementsAre("c:1", "w:1"));
  EXPECT_EQ(spec->ShardOf(MakeTaskId("worker", 0)), 1);
}

TEST(ClusterSpecTest, AllReduceWantsEveryWorker) {
  EXPECT_THAT(
      Parse("job { name: 'worker' tasks { key: 3 value: 'w:1' } }")
          .ForAllReduce(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("worker tasks must be numbered from 0 without gaps, "
                         "found 1 task of which the last has index 3")));
  EXPECT_THAT(Parse("job { name: 'evaluator' tasks { key: 0 value: 'e:1' } }")
                  .ForAllReduce(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the cluster has no worker either")));
}

TEST(ClusterSpecTest, WithoutAListOfWorkersBesidePsTasksAnyMayCome) {
  constexpr char kPs[] = "job { name: 'ps' tasks { key: 0 value: 'p:1' } }";
  const ClusterSpec said =
      Parse(absl::StrCat(kPs, "job { name: 'worker' any_task: true }"));
  const ClusterSpec left_out = Parse(kPs);
  EXPECT_TRUE(said == left_out);
  for (const ClusterSpec& spec : {said, left_out}) {
    EXPECT_TRUE(spec.takes_any_worker());
    EXPECT_EQ(spec.Summary(), "ps 1, any worker");
    EXPECT_THAT(spec.training_tasks(), ElementsAre(MakeTaskId("worker", 0)));
    const ClusterDef def = spec.TrainingDef();
    ASSERT_EQ(def.job_size(), 2);
    EXPECT_TRUE(def.job(1).any_task());
    EXPECT_THAT(ClusterSpec::Create(def), IsOkAndHolds(spec));
  }
  EXPECT_FALSE(Parse(kTwoAndTwo).takes_any_worker());
  EXPECT_FALSE(ClusterSpec().takes_any_worker());
}

TEST(ClusterSpecTest, WhereAnyMayComeAListedChiefIsTheChief) {
  const ClusterSpec spec = Parse(
      "job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
      "job { name: 'chief' tasks { key: 0 value: 'c:1' } }");
  EXPECT_TRUE(spec.takes_any_worker());
  EXPECT_THAT(spec.training_tasks(), ElementsAre(MakeTaskId("chief", 0)));
  EXPECT_EQ(spec.Summary(), "ps 1, chief 1, any worker");
}

TEST(ClusterSpecTest, TellsAPsOfAllButTheEvaluator) {
  const ClusterDef def =
      Parse(absl::StrCat(
                kTwoAndTwo,
                "job { name: 'evaluator' tasks { key: 0 value: 'e:1' } }"))
          .TrainingDef();
  ASSERT_EQ(def.job_size(), 2);
  EXPECT_EQ(def.job(0).name(), "ps");
  EXPECT_EQ(def.job(1).name(), "worker");
  EXPECT_EQ(def.job(1).tasks_size(), 2);
}

TEST(ClusterSpecTest, RefusesWhatIsNoCluster) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  const Case kCases[] = {
      {"job { name: 'wroker' tasks { key: 0 value: 'w0:1' } }",
       "did you mean 'worker'"},
      {"job { name: 'ps' tasks { key: 1 value: 'p:1' } }", "without gaps"},
      {"job { name: 'ps' tasks { key: -1 value: 'p:1' } }", "negative"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:0' } }",
       "/job:ps/task:0: address 'p:0'"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
       "job { name: 'worker' tasks { key: 2 value: 'P:1' } }",
       "/job:ps/task:0 and /job:worker/task:2 both have it"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
       "job { name: 'ps' tasks { key: 0 value: 'q:1' } }",
       "job 'ps' is given twice"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
       "job { name: 'chief' tasks { key: 0 value: 'q:1' } }"
       "job { name: 'master' tasks { key: 0 value: 'r:1' } }",
       "also as 'master'"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
       "job { name: 'chief' tasks { key: 0 value: 'q:1' }"
       "                    tasks { key: 1 value: 'r:1' } }",
       "'chief' may have at most one task"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
       "job { name: 'evaluator' tasks { key: 0 value: 'q:1' }"
       "                        tasks { key: 1 value: 'r:1' } }",
       "'evaluator' may have at most one task"},
      {"job { name: 'worker' any_task: true }", "the cluster has no ps task"},
      {"job { name: 'ps' any_task: true }", "which job worker alone may"},
      {"job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
       "job { name: 'worker' any_task: true tasks { key: 0 value: 'w:1' } }",
       "takes any task, and lists 1"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(
        ParseClusterText(c.text, "test"),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)))
        << c.text;
  }
}

TEST(ClusterSpecTest, LimitsTheNumberOfTasks) {
  ClusterDef def;
  JobDef* job = def.add_job();
  job->set_name("ps");
  for (int i = 0; i < ClusterSpec::kMaxTasks; ++i) {
    (*job->mutable_tasks())[i] = absl::StrCat("h", i, ":1");
  }
  EXPECT_THAT(ClusterSpec::Create(def), IsOk());
  (*job->mutable_tasks())[ClusterSpec::kMaxTasks] = "one-more:1";
  EXPECT_THAT(
      ClusterSpec::Create(def),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 4096")));
}

TEST(ClusterSpecTest, NamesTheFirstDifference) {
  const ClusterSpec a = Parse(kTwoAndTwo);
  EXPECT_EQ(ClusterSpec::Difference(a, "a", a, "b"), "");
  const ClusterSpec b = Parse(
      "job { name: 'ps' tasks { key: 0 value: 'p0:1' }"
      "                 tasks { key: 1 value: 'x:1' } }");
  EXPECT_EQ(ClusterSpec::Difference(a, "A", b, "B"),
            "/job:ps/task:1 is p1:1 in A and x:1 in B");
  const ClusterSpec c = Parse(
      "job { name: 'ps' tasks { key: 0 value: 'p0:1' }"
      "                 tasks { key: 1 value: 'p1:1' } }");
  EXPECT_EQ(ClusterSpec::Difference(a, "A", c, "B"),
            "/job:worker/task:0 is w0:1 in A and whoever comes in B");
  EXPECT_TRUE(a != c);
}

}  // namespace
}  // namespace muster
