#include "ps_server/http/metrics_text.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/http/small_look.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The samples, without HELP and TYPE.
std::string SamplesOf(const std::string& text) {
  std::string samples;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty() && line[0] != '#') absl::StrAppend(&samples, line, "\n");
  }
  return samples;
}

TEST(MetricsTextTest, ASmallPsTask_IsToldWhole) {
  EXPECT_EQ(SamplesOf(MetricsText(SmallShardLook())),
            R"(muster_build_info{role="ps",task="0",version="0.1.0"} 1
muster_shard_limit_bytes{role="ps",task="0"} 1048576
muster_push_no_room_total{role="ps",task="0"} 2
process_resident_memory_bytes{role="ps",task="0"} 4096
process_start_time_seconds{role="ps",task="0"} 1699999900
process_cpu_seconds_total{role="ps",task="0"} 1.5
muster_shard_ready{role="ps",task="0",namespace=""} 1
muster_shard_ready{role="ps",task="0",namespace="we\"ird"} 0
muster_parameter_bytes{role="ps",task="0",namespace=""} 400
muster_parameter_bytes{role="ps",task="0",namespace="we\"ird"} 0
muster_slot_bytes{role="ps",task="0",namespace=""} 800
muster_slot_bytes{role="ps",task="0",namespace="we\"ird"} 0
muster_updates_total{role="ps",task="0",namespace=""} 31
muster_updates_total{role="ps",task="0",namespace="we\"ird"} 0
muster_unfinished_steps_total{role="ps",task="0",namespace=""} 1
muster_unfinished_steps_total{role="ps",task="0",namespace="we\"ird"} 0
muster_push_parts_total{role="ps",task="0",namespace="",outcome="applied"} 60
muster_push_parts_total{role="ps",task="0",namespace="",outcome="duplicate"} 3
muster_push_parts_total{role="ps",task="0",namespace="",outcome="late"} 6
muster_push_parts_total{role="ps",task="0",namespace="",outcome="fenced"} 4
muster_push_parts_total{role="ps",task="0",namespace="",outcome="refused"} 5
muster_push_parts_total{role="ps",task="0",namespace="we\"ird",outcome="applied"} 0
muster_push_parts_total{role="ps",task="0",namespace="we\"ird",outcome="duplicate"} 0
muster_push_parts_total{role="ps",task="0",namespace="we\"ird",outcome="late"} 0
muster_push_parts_total{role="ps",task="0",namespace="we\"ird",outcome="fenced"} 0
muster_push_parts_total{role="ps",task="0",namespace="we\"ird",outcome="refused"} 0
muster_table_rows{role="ps",task="0",namespace="we\"ird",table="ta\\ble\n</script>"} 7
muster_table_bytes{role="ps",task="0",namespace="we\"ird",table="ta\\ble\n</script>"} 700
muster_table_created_rows_total{role="ps",task="0",namespace="we\"ird",table="ta\\ble\n</script>"} 9
muster_table_evicted_rows_total{role="ps",task="0",namespace="we\"ird",table="ta\\ble\n</script>"} 2
)");
}

TEST(MetricsTextTest, AJob_IsToldWithItsWorkers) {
  const std::string samples = SamplesOf(MetricsText(SmallLook()));
  const size_t jobs = samples.find("muster_job_phase");
  ASSERT_NE(jobs, samples.npos);
  EXPECT_EQ(samples.substr(jobs),
            R"(muster_job_phase{namespace="",phase="INITIAL"} 0
muster_job_phase{namespace="",phase="RUNNING"} 1
muster_job_phase{namespace="",phase="STOPPING"} 0
muster_job_phase{namespace="",phase="DONE"} 0
muster_global_step{namespace=""} 25
muster_model_epoch{namespace=""} 2
muster_checkpoint_last_success_timestamp_seconds{namespace=""} 1699999997.5
muster_checkpoint_last_success_step{namespace=""} 20
muster_workers{namespace="",state="awaited"} 0
muster_workers{namespace="",state="drained"} 0
muster_workers{namespace="",state="finished"} 0
muster_workers{namespace="",state="lost"} 1
muster_workers{namespace="",state="not come"} 1
muster_workers{namespace="",state="trains"} 1
muster_waiting{namespace="",for="/job:worker/task:1"} 1
muster_waiting{namespace="",for="/job:worker/task:2"} 1
muster_staleness_steps_bucket{namespace="",le="0"} 4
muster_staleness_steps_bucket{namespace="",le="1"} 7
muster_staleness_steps_bucket{namespace="",le="2"} 7
muster_staleness_steps_bucket{namespace="",le="4"} 8
muster_staleness_steps_bucket{namespace="",le="8"} 8
muster_staleness_steps_bucket{namespace="",le="16"} 8
muster_staleness_steps_bucket{namespace="",le="32"} 8
muster_staleness_steps_bucket{namespace="",le="63"} 8
muster_staleness_steps_bucket{namespace="",le="+Inf"} 8
muster_staleness_steps_sum{namespace=""} 6
muster_staleness_steps_count{namespace=""} 8
muster_steps_total{role="worker",task="0",namespace=""} 35
muster_steps_total{role="worker",task="1",namespace=""} 0
muster_steps_total{role="worker",task="2",namespace=""} 0
muster_examples_total{role="worker",task="0",namespace=""} 1120
muster_examples_total{role="worker",task="1",namespace=""} 0
muster_examples_total{role="worker",task="2",namespace=""} 0
muster_dropped_steps_total{role="worker",task="0",namespace=""} 1
muster_dropped_steps_total{role="worker",task="1",namespace=""} 0
muster_dropped_steps_total{role="worker",task="2",namespace=""} 0
muster_last_step_timestamp_seconds{role="worker",task="0",namespace=""} 1699999990
muster_loss{role="worker",task="0",namespace=""} 0.25
)");
}

TEST(MetricsTextTest, AFamily_IsSaidOnceBeforeItsSamples) {
  EXPECT_THAT(MetricsText(SmallLook()),
              HasSubstr("# HELP muster_table_rows Rows of a sparse table "
                        "here.\n# TYPE muster_table_rows gauge\n"
                        "muster_table_rows{"));
}

TEST(MetricsTextTest, WithoutASave_ThereIsNoTimeOfOne) {
  PsLook look = SmallLook();
  look.jobs[0].state.set_saved_step(-1);
  EXPECT_THAT(MetricsText(look), Not(HasSubstr("muster_checkpoint")));
}

TEST(MetricsTextTest, LossesThatAreNoNumbers_AreToldAsPrometheusHasThem) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<double, const char*> kLosses[] = {
      {kInfinity, "+Inf"},
      {-kInfinity, "-Inf"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"}};
  for (const auto& [loss, text] : kLosses) {
    PsLook look = SmallLook();
    look.jobs[0].state.mutable_workers(0)->set_last_loss(loss);
    EXPECT_THAT(MetricsText(look),
                HasSubstr(absl::StrCat(
                    R"(muster_loss{role="worker",task="0",namespace=""} )",
                    text, "\n")));
  }
}

TEST(MetricsTextTest, StalenessOf64AndMore_IsInTheLastBucketAlone) {
  PsLook look = SmallLook();
  auto* const counts = look.jobs[0].state.mutable_staleness_counts();
  counts->Clear();
  counts->Resize(65, 0);
  counts->Set(63, 1);
  counts->Set(64, 2);
  const std::string text = MetricsText(look);
  EXPECT_THAT(text, HasSubstr(R"(namespace="",le="32"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(namespace="",le="63"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(namespace="",le="+Inf"} 3)"));
  EXPECT_THAT(text,
              HasSubstr("muster_staleness_steps_sum{namespace=\"\"} 191"));
}

TEST(MetricsTextTest, WhoIsWaitedFor_IsATaskOrOneOfTwoWords) {
  EXPECT_THAT(AwaitedBy(""), IsEmpty());
  EXPECT_THAT(AwaitedBy("/job:worker/task:3 to push its gradient of step 9"),
              ElementsAre("/job:worker/task:3"));
  EXPECT_THAT(AwaitedBy("/job:worker/task:3, /job:chief/task:0 to come"),
              ElementsAre("/job:worker/task:3", "/job:chief/task:0"));
  EXPECT_THAT(AwaitedBy("2 of the job's workers to come"),
              ElementsAre("workers"));
  EXPECT_THAT(AwaitedBy("more workers to come: 2 there, at least 3"),
              ElementsAre("workers"));
  EXPECT_THAT(AwaitedBy("a ps task that stops to be saved and to leave"),
              ElementsAre("save"));
}

}  // namespace
}  // namespace muster
