#include "worker/executor/device_timer.h"

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_streams.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Stream = DeviceStreams::Stream;

constexpr absl::Duration kWork = FakeStreams::kWorkTime;
// Between two steps.
constexpr absl::Duration kPause = absl::Seconds(1);

class DeviceTimerTest : public testing::Test {
 protected:
  DeviceTimerTest() {
    EXPECT_THAT(streams_.MakeCurrent(), IsOk());
    trace_.clock = &clock_;
  }

  // Into the stream, so many pieces of work, as one thing.
  absl::Status Time(Stream stream, const char* name, int pieces = 1) {
    return timer_.Time({stream, name}, [&] {
      absl::Status status;
      for (int i = 0; i < pieces; ++i) {
        status.Update(
            streams_.PutWork(stream, [] { return absl::OkStatus(); }));
      }
      return status;
    });
  }
  // A step of `pieces` in kCompute.
  void Step(DeviceTrace* trace, int pieces) {
    clock_.Advance(kPause);
    ASSERT_THAT(timer_.Begin(trace), IsOk());
    ASSERT_THAT(Time(Stream::kCompute, "forward", pieces), IsOk());
    ASSERT_THAT(timer_.Finish(), IsOk());
    ASSERT_THAT(streams_.Synchronize(), IsOk());
  }
  static std::vector<absl::Duration> Lengths(const DeviceTrace& trace) {
    std::vector<absl::Duration> lengths;
    for (const DeviceSpan& span : trace.spans) {
      lengths.push_back(span.end - span.begin);
    }
    return lengths;
  }

  FakeStreams streams_{/*seed=*/1};
  FakeClock clock_;
  DeviceTrace trace_;
  DeviceTimer timer_{&streams_};
};

TEST_F(DeviceTimerTest, WithoutATraceItOnlyDoesTheWork) {
  for (int step = 0; step < 2; ++step) {
    ASSERT_THAT(timer_.Begin(nullptr), IsOk());
    // The only call of the device.
    streams_.FailCall(2);
    ASSERT_THAT(Time(Stream::kCompute, "forward"), IsOk());
    ASSERT_THAT(timer_.Finish(), IsOk());
    streams_.FailCall(0);
    ASSERT_THAT(streams_.Synchronize(), IsOk());
  }
  EXPECT_EQ(streams_.timed_records(), 0);
}

TEST_F(DeviceTimerTest, ASpanIsWhereTheDeviceSawItAfterTheOrigin) {
  clock_.Advance(kPause);
  const absl::Time begun = clock_.Now();
  ASSERT_THAT(timer_.Begin(&trace_), IsOk());
  // The host looks at the device again much later.
  clock_.Advance(kPause);
  ASSERT_THAT(Time(Stream::kCompute, "forward", 3), IsOk());
  ASSERT_THAT(Time(Stream::kCompute, "backward", 5), IsOk());
  ASSERT_THAT(timer_.Finish(), IsOk());
  ASSERT_THAT(trace_.spans, SizeIs(2));
  EXPECT_STREQ(trace_.spans[0].name, "forward");
  EXPECT_EQ(trace_.spans[0].begin, begun);
  EXPECT_EQ(trace_.spans[1].begin, begun + 3 * kWork);
  EXPECT_THAT(Lengths(trace_), ElementsAre(3 * kWork, 5 * kWork));
}

TEST_F(DeviceTimerTest, ItsOwnStreamIsWhatASpanWaitsFor) {
  // As late as can be.
  streams_.SetWeight(Stream::kToDevice, 0);
  ASSERT_THAT(timer_.Begin(&trace_), IsOk());
  ASSERT_THAT(timer_.Time({Stream::kToDevice, "", /*tensor=*/7, /*bytes=*/12},
                          [&] {
                            return streams_.PutWork(Stream::kToDevice, [] {
                              return absl::OkStatus();
                            });
                          }),
              IsOk());
  ASSERT_THAT(Time(Stream::kCompute, "forward", 4), IsOk());
  // Awaits both.
  ASSERT_THAT(timer_.Finish(), IsOk());
  ASSERT_THAT(trace_.spans, SizeIs(2));
  EXPECT_EQ(trace_.spans[0].stream, Stream::kToDevice);
  EXPECT_EQ(trace_.spans[0].tensor, 7);
  EXPECT_EQ(trace_.spans[0].bytes, 12);
  EXPECT_GE(trace_.spans[0].end - trace_.spans[0].begin, kWork);
  EXPECT_EQ(trace_.spans[1].end - trace_.spans[1].begin, 4 * kWork);
}

TEST_F(DeviceTimerTest, WhatComesAfterAStepIsInTheNextOnesTrace) {
  Step(&trace_, 1);
  ASSERT_THAT(Time(Stream::kCompute, "update", 2), IsOk());
  DeviceTrace next;
  next.clock = &clock_;
  Step(&next, 3);
  ASSERT_THAT(trace_.spans, SizeIs(1));
  ASSERT_THAT(next.spans, SizeIs(2));
  EXPECT_STREQ(next.spans[0].name, "update");
  EXPECT_THAT(Lengths(next), ElementsAre(2 * kWork, 3 * kWork));
  // By the first origin, and by the second.
  EXPECT_EQ(next.spans[0].begin, trace_.spans[0].end);
  EXPECT_EQ(next.spans[1].begin, trace_.spans[0].begin + kPause);
}

TEST_F(DeviceTimerTest, SpansOfAStreamDoNotOverlapWhereTwoOriginsDiffer) {
  // Nobody waits for the device between the two: it is late for the second.
  ASSERT_THAT(timer_.Begin(&trace_), IsOk());
  ASSERT_THAT(Time(Stream::kCompute, "forward"), IsOk());
  ASSERT_THAT(timer_.Finish(), IsOk());
  ASSERT_THAT(Time(Stream::kCompute, "update", 9), IsOk());
  ASSERT_THAT(timer_.Begin(&trace_), IsOk());
  ASSERT_THAT(Time(Stream::kCompute, "forward", 2), IsOk());
  ASSERT_THAT(timer_.Finish(), IsOk());
  ASSERT_THAT(trace_.spans, SizeIs(3));
  EXPECT_GE(trace_.spans[1].begin, trace_.spans[0].end);
  EXPECT_GE(trace_.spans[2].begin, trace_.spans[1].end);
  EXPECT_GE(trace_.spans[2].end, trace_.spans[2].begin);
}

TEST_F(DeviceTimerTest, AStepWithoutATraceForgetsWhatWasTimed) {
  Step(&trace_, 1);
  ASSERT_THAT(Time(Stream::kCompute, "update"), IsOk());
  Step(nullptr, 1);
  DeviceTrace third;
  Step(&third, 2);
  EXPECT_THAT(Lengths(third), ElementsAre(2 * kWork));
}

TEST_F(DeviceTimerTest, AStepThatFailedIsForgotten) {
  ASSERT_THAT(timer_.Begin(&trace_), IsOk());
  ASSERT_THAT(Time(Stream::kCompute, "forward"), IsOk());
  const absl::Status why = absl::AbortedError("no more");
  EXPECT_EQ(timer_.Time({Stream::kCompute, "backward"}, [&] { return why; }),
            why);
  ASSERT_THAT(streams_.Synchronize(), IsOk());
  DeviceTrace next;
  Step(&next, 2);
  EXPECT_THAT(trace_.spans, IsEmpty());
  EXPECT_THAT(Lengths(next), ElementsAre(2 * kWork));
}

TEST_F(DeviceTimerTest, AnyCallThatFailsIsTold) {
  int failed = 0;
  for (bool has_failed = true; has_failed && failed < 100; ++failed) {
    ASSERT_THAT(streams_.Synchronize(), IsOk());
    DeviceTimer timer(&streams_);
    streams_.FailCall(failed + 1);
    absl::Status status = timer.Begin(&trace_);
    if (status.ok()) {
      status = timer.Time({Stream::kToHost, "loss"}, [&] {
        return streams_.PutWork(Stream::kToHost,
                                [] { return absl::OkStatus(); });
      });
    }
    if (status.ok()) status = timer.Finish();
    streams_.FailCall(0);
    has_failed = !status.ok();
    if (has_failed) {
      EXPECT_THAT(status.message(), HasSubstr("the fake fails"));
    }
  }
  EXPECT_GT(failed, 8);
  EXPECT_LT(failed, 100);
}

}  // namespace
}  // namespace muster
