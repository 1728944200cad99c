#include "worker/hook/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/config/json.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;
using Stream = DeviceStreams::Stream;

// A span of the file, in microseconds.
struct Span {
  std::string lane;
  std::string name;
  double begin = 0;
  double end = 0;
};

class ProfilerTest : public ::testing::Test {
 protected:
  ProfilerTest() {
    options_.task_name = "/job:worker/task:1";
    options_.process_id = 1;
    options_.steps = {/*first=*/3, /*count=*/2};
    options_.path = "dir/profile.json";
  }
  Profiler Make() {
    return Profiler(
        options_,
        [this](const std::string& path, const std::string& content) {
          paths_.push_back(path);
          content_ = content;
          return status_;
        },
        said_.reporter());
  }
  // Steps of 100 ms: 1 ms for the rows, 9 to pull, 70 to compute, 1 in hooks,
  // 9 to push, 1 until the end and 9 to report.
  static StepRecord At(int64_t number) {
    const auto at = [number](int64_t ms) {
      return absl::UnixEpoch() + absl::Milliseconds(100 * number + ms);
    };
    StepRecord step;
    step.step = number;
    step.times.begun = step.times.read_begun = at(0);
    step.times.read = step.times.pull_begun = at(1);
    step.times.pulled = step.times.compute_begun = at(10);
    step.times.computed = at(80);
    step.times.decided = at(81);
    step.times.pushed = at(90);
    step.times.ended = at(91);
    step.now = at(100);
    return step;
  }
  static void Run(Profiler& profiler, int64_t steps) {
    for (int64_t i = 1; i <= steps; ++i) {
      EXPECT_THAT(profiler.AfterStep(At(i)), IsOk());
    }
  }

  // The X events, checked for what each needs.
  std::vector<Span> Spans() {
    const auto document = ParseJson(content_);
    EXPECT_THAT(document, IsOk());
    std::map<std::string, std::string> lanes;
    std::vector<Span> spans;
    for (const JsonValue& event : document->Find("traceEvents")->items) {
      const auto text = [&event](absl::string_view name) {
        const JsonValue* const value = event.Find(name);
        return value == nullptr ? std::string("?") : value->text;
      };
      if (text("name") == "thread_name") {
        lanes[text("tid")] = event.Find("args")->Find("name")->text;
      }
      if (text("ph") != "X") continue;
      Span span{lanes[text("tid")], text("name")};
      double duration = 0;
      EXPECT_TRUE(absl::SimpleAtod(text("ts"), &span.begin));
      EXPECT_TRUE(absl::SimpleAtod(text("dur"), &duration));
      span.end = span.begin + duration;
      spans.push_back(span);
    }
    return spans;
  }

  // So long after step 3 has begun.
  static absl::Time AtMs(int64_t ms) {
    return At(3).times.begun + absl::Milliseconds(ms);
  }
  // The profile of step 3 alone: "lane: name begin-end" of each span, in
  // milliseconds from its begin.
  std::vector<std::string> Found(const StepRecord& step) {
    Profiler profiler = Make();
    EXPECT_THAT(profiler.AfterStep(step), IsOk());
    EXPECT_THAT(profiler.AtEnd(EndRecord()), IsOk());
    std::vector<std::string> found;
    for (const Span& span : Spans()) {
      found.push_back(absl::StrCat(span.lane, ": ", span.name, " ",
                                   span.begin / 1e3 - 300, "-",
                                   span.end / 1e3 - 300));
    }
    return found;
  }

  Profiler::Options options_;
  absl::Status status_;
  std::vector<std::string> paths_;
  std::string content_;
  ReportedLines said_;
};

TEST_F(ProfilerTest, WritesTheStepsThatWereAskedFor) {
  Profiler profiler = Make();
  Run(profiler, 9);
  EXPECT_THAT(paths_, ElementsAre("dir/profile.json"));
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("profile of 2 steps")));
  const std::vector<Span> spans = Spans();
  ASSERT_THAT(spans, SizeIs(14));
  EXPECT_EQ(spans[0].lane, "step");
  EXPECT_EQ(spans[0].begin, 300e3);
  EXPECT_EQ(spans[0].end, 400e3);
  EXPECT_EQ(spans[2].lane, "pull");
  EXPECT_EQ(spans[2].begin, 301e3);
  EXPECT_EQ(spans[2].end, 310e3);
  EXPECT_EQ(spans[3].lane, "compute");
  EXPECT_EQ(spans[5].lane, "push");
  EXPECT_EQ(spans[13].end, 500e3);
}

// ui.perfetto.dev wants it of X events on one thread.
TEST_F(ProfilerTest, SpansOfALaneNestOrDoNotTouch) {
  options_.steps.count = 5;
  Profiler profiler = Make();
  Run(profiler, 9);
  const std::vector<Span> spans = Spans();
  for (const Span& a : spans) {
    EXPECT_LE(a.begin, a.end);
    for (const Span& b : spans) {
      if (a.lane != b.lane) continue;
      const bool apart = a.end <= b.begin || b.end <= a.begin;
      const bool a_in_b = b.begin <= a.begin && a.end <= b.end;
      const bool b_in_a = a.begin <= b.begin && b.end <= a.end;
      EXPECT_TRUE(apart || a_in_b || b_in_a) << a.name << " " << b.name;
    }
  }
}

// Three messages, one of them with two tensors; the third leaves when the first
// is acknowledged.
TEST_F(ProfilerTest, ShowsTensorsOnTheirWayAndTheBackwardPass) {
  options_.spans.tensor_names = {"conv/weights", "dense/weights", "dense/bias"};
  StepRecord step = At(3);
  step.times.forward_end = AtMs(30);
  step.times.backward_end = AtMs(75);
  step.times.sends = {{0, 100, AtMs(70), AtMs(85)},
                      {1, 4000, AtMs(40), AtMs(60)},
                      {1, 2000, AtMs(41), AtMs(70)},
                      {2, 20, AtMs(41), AtMs(70)}};
  EXPECT_THAT(
      Found(step),
      IsSupersetOf({"compute: compute 10-80", "compute: forward 10-30",
                    "compute: backward 30-75", "send 1: dense/weights 40-60",
                    "send 2: dense/weights 41-70", "send 2: dense/bias 41-70",
                    "send 1: conv/weights 70-85"}));
}

TEST_F(ProfilerTest, ShowsWhoHasWaitedForAPullThatIsUnderWay) {
  options_.spans.tensor_names = {"conv/weights", "dense/weights"};
  StepRecord step = At(3);
  step.times.compute_begun = AtMs(1);
  step.times.pulled = AtMs(20);
  step.times.forward_end = AtMs(30);
  step.times.backward_end = AtMs(75);
  step.times.waits = {{0, AtMs(2), AtMs(5)}, {1, AtMs(9), AtMs(20)}};
  EXPECT_THAT(Found(step),
              IsSupersetOf({"pull: pull 1-20", "compute: compute 1-80",
                            "compute: forward 1-30",
                            "compute: wait for conv/weights 2-5",
                            "compute: wait for dense/weights 9-20"}));
}

// The work of a tower's step on its device.
DeviceTrace TraceOf(const std::string& device) {
  const auto at = [](int64_t ms) {
    return absl::UnixEpoch() + absl::Milliseconds(300 + ms);
  };
  DeviceTrace trace;
  trace.device = device;
  trace.spans = {
      {Stream::kCompute, "update", -1, 0, at(-5), at(-4)},
      {Stream::kToDevice, "batch", -1, 400, at(11), at(12)},
      {Stream::kToDevice, "", 1, 20, at(12), at(14)},
      {Stream::kCompute, "forward", -1, 0, at(14), at(30)},
      {Stream::kToHost, "mean", 1, 0, at(40), at(41)},
      {Stream::kToHost, "", 1, 20, at(41), at(43)},
  };
  return trace;
}

TEST_F(ProfilerTest, ShowsWhatADeviceDid) {
  options_.spans.tensor_names = {"conv/weights", "dense/bias"};
  StepRecord step = At(3);
  step.times.devices = {TraceOf("cuda:0")};
  EXPECT_THAT(
      Found(step),
      IsSupersetOf(
          {"device compute: update -5--4", "to device: batch 11-12",
           "to device: dense/bias 12-14", "device compute: forward 14-30",
           "to host: mean of dense/bias 40-41", "to host: dense/bias 41-43"}));
  EXPECT_THAT(content_, HasSubstr(R"("args":{"step":3,"bytes":400}})"));
}

TEST_F(ProfilerTest, EachOfSeveralDevicesHasItsLanes) {
  options_.spans.tensor_names = {"conv/weights", "dense/bias"};
  StepRecord step = At(3);
  step.times.devices = {TraceOf("cuda:0"), TraceOf("cuda:1")};
  step.times.sends = {{0, 100, AtMs(70), AtMs(85)}};
  EXPECT_THAT(Found(step),
              IsSupersetOf({"device compute of cuda:0: forward 14-30",
                            "device compute of cuda:1: forward 14-30",
                            "to host of cuda:1: dense/bias 41-43",
                            "send 1: conv/weights 70-85"}));
}

TEST_F(ProfilerTest, ADeviceWithoutStreamsHasNoLanes) {
  StepRecord step = At(3);
  step.times.devices.resize(2);
  EXPECT_THAT(Found(step), SizeIs(7));
  EXPECT_THAT(content_, Not(HasSubstr("device")));
}

// A pipeline of two: what was computed in the step before.
TEST_F(ProfilerTest, AStepThatWasComputedAheadBeginsWithItsHooks) {
  StepRecord step = At(3);
  step.times.read_begun = AtMs(-80);
  step.times.read = AtMs(-79);
  step.times.compute_begun = AtMs(-79);
  step.times.computed = AtMs(-10);
  step.times.decided = AtMs(2);
  EXPECT_THAT(Found(step),
              IsSupersetOf({"step: step 0-100", "step: input -80--79",
                            "compute: compute -79--10", "step: hooks 0-2",
                            "push: push 2-90", "step: report 91-100"}));
}

// Steps 3 and 4 have rows that were ready before they began.
TEST_F(ProfilerTest, ShowsRowsThatWerePreparedWhileOthersWereComputed) {
  options_.steps.count = 2;
  Profiler profiler = Make();
  for (int64_t number = 3; number <= 4; ++number) {
    StepRecord step = At(number);
    step.times.rows_begun = step.times.begun - absl::Milliseconds(90);
    step.times.rows_done = step.times.begun - absl::Milliseconds(20);
    EXPECT_THAT(profiler.AfterStep(step), IsOk());
  }
  std::vector<double> rows;
  for (const Span& span : Spans()) {
    if (span.lane != "input") continue;
    EXPECT_EQ(span.name, "prepare rows");
    rows.insert(rows.end(), {span.begin, span.end});
  }
  // The second within step 3's computation, from 310 to 380.
  EXPECT_THAT(rows, ElementsAre(210e3, 280e3, 310e3, 380e3));
}

TEST_F(ProfilerTest, AnEarlyEndWritesWhatThereIs) {
  Profiler profiler = Make();
  Run(profiler, 3);
  EXPECT_THAT(paths_, SizeIs(0));
  ASSERT_THAT(profiler.AtEnd(EndRecord()), IsOk());
  EXPECT_THAT(Spans(), SizeIs(7));
}

// Who counts on the last one may wait for ever.
TEST_F(ProfilerTest, WritesWithoutStepsThatWereRefused) {
  Profiler profiler = Make();
  Run(profiler, 3);
  EXPECT_THAT(profiler.AfterStep(At(5)), IsOk());
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("profile of 1 steps")));
  EXPECT_THAT(Spans(), SizeIs(7));
}

TEST_F(ProfilerTest, SaysThatItNeverBegan) {
  Profiler profiler = Make();
  Run(profiler, 2);
  ASSERT_THAT(profiler.AtEnd(EndRecord()), IsOk());
  EXPECT_THAT(paths_, SizeIs(0));
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("ended before step 3")));
}

TEST_F(ProfilerTest, AFileThatCannotBeWrittenIsSaidAndPassedOver) {
  status_ = absl::ResourceExhaustedError("disk full");
  Profiler profiler = Make();
  Run(profiler, 9);
  ASSERT_THAT(profiler.AtEnd(EndRecord()), IsOk());
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("disk full")));
}

}  // namespace
}  // namespace muster
