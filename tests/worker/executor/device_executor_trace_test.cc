// A traced step tells of its device, and others pay nothing for it.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/executor/trainee.h"
#include "worker/backend/device_mean.h"
#include "worker/executor/device_executor.h"
#include "worker/executor/device_trace.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Stream = DeviceStreams::Stream;

constexpr int64_t kRows = Trainee::kRows;
// Plain, captured, and launched twice.
constexpr int kSteps = 4;
// More than the calls of a traced step of WideModel.
constexpr int kMostCalls = 1000;

std::vector<DeviceSpan> Of(const DeviceTrace& trace, Stream stream) {
  std::vector<DeviceSpan> found;
  for (const DeviceSpan& span : trace.spans) {
    if (span.stream == stream) found.push_back(span);
  }
  return found;
}

// "forward", or "weights" for the copy of a parameter, each with its bytes.
std::map<std::string, int64_t> BytesByName(
    CompiledModel& model, const std::vector<DeviceSpan>& spans) {
  std::map<std::string, int64_t> bytes;
  for (const DeviceSpan& span : spans) {
    std::string name = span.name;
    if (span.tensor >= 0) {
      absl::StrAppend(&name, model.parameters()[span.tensor].name());
    }
    EXPECT_EQ(bytes.count(name), 0) << name << " twice";
    bytes[name] = span.bytes;
  }
  return bytes;
}

// All that is trained is on its way, or the gradient of it.
void ExpectCopies(CompiledModel& model, std::map<std::string, int64_t> bytes) {
  for (int i = 0; i < static_cast<int>(model.parameters().size()); ++i) {
    const TensorDef& parameter = model.parameters()[i];
    if (parameter.kind() != TRAINABLE) continue;
    EXPECT_EQ(bytes[parameter.name()],
              4 * static_cast<int64_t>(model.parameter(i).size()))
        << parameter.name();
  }
}

void ExpectInOrder(const std::vector<DeviceSpan>& spans, absl::Time begin,
                   absl::Time end) {
  for (const DeviceSpan& span : spans) {
    EXPECT_GE(span.begin, begin) << span.name;
    EXPECT_GT(span.end, span.begin) << span.name;
    begin = span.end;
  }
  EXPECT_LE(begin, end);
}

class DeviceExecutorTraceTest : public testing::TestWithParam<bool> {
 protected:
  DeviceExecutorTraceTest() {
    auto backend = MakeDevice("ref");
    streams_ = backend->streams();
    device_ = std::make_unique<Trainee>(std::move(backend), WideModel(),
                                        /*use_graphs=*/GetParam());
  }
  absl::Status Step(DeviceTrace* trace, SeededBatch next = {}) {
    return device_->model()
        .Step(batch_, /*step_seed=*/1,
              {/*listener=*/nullptr, /*gate=*/nullptr, next, trace})
        .status();
  }

  Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  FakeStreams* streams_ = nullptr;
  std::unique_ptr<Trainee> device_;
};

TEST_P(DeviceExecutorTraceTest, ShowsEachSegmentAndEachCopy) {
  CompiledModel& model = device_->model();
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    DeviceTrace trace;
    const absl::Time begin = trace.clock->Now();
    ASSERT_THAT(Step(&trace), IsOk());
    const absl::Time end = trace.clock->Now();
    const std::vector<DeviceSpan> compute = Of(trace, Stream::kCompute);
    const std::vector<DeviceSpan> in = Of(trace, Stream::kToDevice);
    const std::vector<DeviceSpan> out = Of(trace, Stream::kToHost);
    for (const auto* spans : {&compute, &in, &out}) {
      ExpectInOrder(*spans, begin, end);
    }
    std::string names;
    for (const DeviceSpan& span : compute) {
      absl::StrAppend(&names, span.name, " ");
      EXPECT_EQ(span.bytes, 0);
    }
    // Three up to the loss.
    EXPECT_EQ(names,
              "forward forward forward backward backward backward "
              "backward ");
    static_assert(kWideSegments == 7);
    EXPECT_STREQ(in[0].name, "batch");
    EXPECT_GE(in[0].bytes, kRows * kManyUsesElements * 4);
    ExpectCopies(model, BytesByName(model, in));
    EXPECT_STREQ(out[0].name, "loss");
    EXPECT_STREQ(out.back().name, "results");
    EXPECT_GT(out.back().bytes, 0);
    ExpectCopies(model, BytesByName(model, out));
    // One waits for the other.
    EXPECT_GE(compute[0].begin, in[0].end);
    EXPECT_GE(out[0].begin, compute[2].end);
    EXPECT_GE(out.back().begin, compute.back().end);
  }
}

TEST_P(DeviceExecutorTraceTest, TheNextBatchIsInTheTraceOfTheStepThatSendsIt) {
  batch_.id = 7;
  for (int step = 0; step < kSteps; ++step) {
    DeviceTrace trace;
    ASSERT_THAT(Step(&trace, {&batch_, /*seed=*/1}), IsOk());
    int batches = 0;
    for (const DeviceSpan& span : trace.spans) {
      if (span.name == std::string("batch")) ++batches;
    }
    // The first step's own, too.
    EXPECT_EQ(batches, step == 0 ? 2 : 1);
    EXPECT_STREQ(Of(trace, Stream::kToDevice).back().name, "batch");
  }
}

TEST_P(DeviceExecutorTraceTest, ChangesNoBit) {
  Trainee plain(MakeBackend("ref"), WideModel());
  for (int step = 0; step < kSteps; ++step) {
    DeviceTrace trace;
    ASSERT_THAT(Step(step % 2 == 0 ? &trace : nullptr), IsOk());
    ASSERT_THAT(plain.model().Step(batch_, 1), IsOk());
    ExpectSameGradients(device_->model(), plain.model());
    EXPECT_EQ(streams_->launches(), GetParam() ? step * kWideSegments : 0);
  }
}

TEST_P(DeviceExecutorTraceTest, AStepWithoutATraceRecordsNoTime) {
  for (int step = 0; step < kSteps; ++step) ASSERT_THAT(Step(nullptr), IsOk());
  EXPECT_EQ(streams_->timed_records(), 0);
  DeviceTrace trace;
  ASSERT_THAT(Step(&trace), IsOk());
  const int64_t records = streams_->timed_records();
  // The origin, and two for each span.
  EXPECT_EQ(records, 1 + 2 * trace.spans.size());
  ASSERT_THAT(Step(nullptr), IsOk());
  EXPECT_EQ(streams_->timed_records(), records);
}

TEST_P(DeviceExecutorTraceTest, AnyCallThatFailsEndsItsStepOnly) {
  for (int step = 0; step < kSteps; ++step) {
    int failed = 0;
    for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
      SCOPED_TRACE(absl::StrCat("step ", step, ", call ", failed + 1));
      streams_->FailCall(failed + 1);
      DeviceTrace trace;
      const absl::Status status = Step(&trace);
      // A call that fails in a capture only ends that.
      has_failed = !status.ok();
      if (has_failed) {
        ASSERT_THAT(status.message(), HasSubstr("the fake fails"));
      }
      streams_->FailCall(0);
    }
    EXPECT_GT(failed, 3);
    EXPECT_LT(failed, kMostCalls);
    DeviceTrace trace;
    ASSERT_THAT(Step(&trace), IsOk());
    EXPECT_EQ(Of(trace, Stream::kCompute).size(), kWideSegments);
  }
}

TEST_P(DeviceExecutorTraceTest, ShowsTheMeanOfSeveralDevices) {
  auto backend = MakeDevice("ref");
  const auto mean = backend->CreateMean({backend.get()});
  ASSERT_THAT(mean, IsOk());
  Trainee device(std::move(backend), WideModel(), GetParam(), mean->get());
  CompiledModel& model = device.model();
  DeviceTrace trace;
  const absl::Time begin = trace.clock->Now();
  ASSERT_THAT(model.Step(batch_, 1, {nullptr, nullptr, {}, &trace}), IsOk());
  const std::vector<DeviceSpan> out = Of(trace, Stream::kToHost);
  ExpectInOrder(out, begin, trace.clock->Now());
  const auto bytes = BytesByName(model, out);
  EXPECT_THAT(bytes, Contains(std::make_pair("meanmiddle/weights", 0)));
  ExpectCopies(model, bytes);
}

INSTANTIATE_TEST_SUITE_P(Graphs, DeviceExecutorTraceTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "graphs" : "plain";
                         });

TEST(HostExecutorTraceTest, TheHostsMemoryIsNoDevice) {
  Trainee host(MakeBackend("ref"), WideModel());
  const Batch batch = MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, 1);
  DeviceTrace trace;
  ASSERT_THAT(host.model().Step(batch, 1, {nullptr, nullptr, {}, &trace}),
              IsOk());
  EXPECT_THAT(trace.spans, IsEmpty());
}

}  // namespace
}  // namespace muster
