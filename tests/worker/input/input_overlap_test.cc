// A step takes as long as its rows or its computation, whichever is longer, and
// not both: in virtual time, where each takes what it is said to take.
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/simulation/simulator.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/leases.h"
#include "worker/input/input_pipeline.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 4;
constexpr int kSteps = 50;

// Each row of which takes a time to be read and mapped.
class SlowDataSet : public CountingDataSet {
 public:
  SlowDataSet(const Simulator* simulator, absl::Duration row)
      : CountingDataSet(100), simulator_(simulator), row_(row) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    simulator_->Sleep(row_);
    return CountingDataSet::Read(index, into);
  }

 private:
  const Simulator* const simulator_;
  const absl::Duration row_;
};

// The time of a step whose rows and whose computation take so long.
absl::Duration StepTime(absl::Duration rows, absl::Duration compute,
                        int64_t prefetch) {
  Simulator simulator(/*verbose=*/false);
  const SlowDataSet data_set(&simulator, rows / kBatch);
  bool done = false;
  absl::Time first;
  absl::Time last;
  const std::unique_ptr<ClockThread> training = simulator.StartThread([&] {
    InputPipeline::Options options;
    options.batch_size = kBatch;
    options.prefetch = prefetch;
    options.clock = &simulator;
    auto pipeline = InputPipeline::Create(&data_set, options);
    ASSERT_THAT(pipeline, IsOk());
    (*pipeline)->SetLeases(LeasesFrom(0, kBatch, 2 * kSteps, kBatch), {});
    for (int step = 0; step <= kSteps; ++step) {
      EXPECT_THAT((*pipeline)->Next(), IsOk());
      if (step == 0) first = simulator.Now();
      if (step < kSteps) simulator.Sleep(compute);
    }
    last = simulator.Now();
    *pipeline = nullptr;
    done = true;
  });
  EXPECT_TRUE(simulator.RunUntil([&done] { return done; },
                                 simulator.Now() + absl::Hours(1)));
  return (last - first) / kSteps;
}

TEST(InputOverlapTest, AStepTakesTheLongerOfRowsAndComputation) {
  const absl::Duration short_time = absl::Milliseconds(40);
  const absl::Duration long_time = absl::Milliseconds(100);
  for (const int64_t prefetch : {1, 2}) {
    EXPECT_EQ(StepTime(long_time, short_time, prefetch), long_time);
    EXPECT_EQ(StepTime(short_time, long_time, prefetch), long_time);
    EXPECT_EQ(StepTime(long_time, long_time, prefetch), long_time);
  }
  // Without a thread that prepares, both.
  EXPECT_EQ(StepTime(short_time, long_time, /*prefetch=*/0),
            short_time + long_time);
}

// The rows of a step are prepared while the one before is computed, and the
// pipeline says when.
TEST(InputOverlapTest, TellsWhenTheRowsOfAStepWerePrepared) {
  Simulator simulator(/*verbose=*/false);
  const SlowDataSet data_set(&simulator, absl::Milliseconds(10));
  const absl::Time begin = simulator.Now();
  bool done = false;
  const std::unique_ptr<ClockThread> training = simulator.StartThread([&] {
    InputPipeline::Options options;
    options.batch_size = kBatch;
    options.prefetch = 1;
    options.clock = &simulator;
    auto pipeline = InputPipeline::Create(&data_set, options);
    ASSERT_THAT(pipeline, IsOk());
    (*pipeline)->SetLeases(LeasesFrom(0, kBatch, 2 * kSteps, kBatch), {});
    for (int step = 0; step < 3; ++step) {
      EXPECT_THAT((*pipeline)->Next(), IsOk());
      const InputPipeline::Preparation& rows = (*pipeline)->preparation();
      // A step takes 100 ms; the two buffers are filled at first.
      const absl::Duration begun =
          absl::Milliseconds(step < 2 ? 40 * step : 140);
      EXPECT_EQ(rows.begun - begin, begun) << step;
      EXPECT_EQ(rows.done - rows.begun, absl::Milliseconds(40)) << step;
      simulator.Sleep(absl::Milliseconds(100));
    }
    *pipeline = nullptr;
    done = true;
  });
  EXPECT_TRUE(simulator.RunUntil([&done] { return done; },
                                 simulator.Now() + absl::Hours(1)));
}

}  // namespace
}  // namespace muster
