#include "worker/input/input_pipeline.h"

#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/stopped_error.h"
#include "common/rows/row_ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/leases.h"
#include "worker/input/data_order.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

InputPipeline::Options Options(int64_t prefetch) {
  InputPipeline::Options options;
  options.seed = 7;
  options.batch_size = 4;
  options.prefetch = prefetch;
  return options;
}

// Every second step's rows: those between are another worker's.
constexpr int kSteps = 100;
std::vector<RowLease> EverySecond(int64_t step_rows) {
  return LeasesFrom(step_rows, step_rows, kSteps, 2 * step_rows);
}

std::unique_ptr<InputPipeline> Make(const DataSet& data_set,
                                    const InputPipeline::Options& options) {
  auto pipeline = InputPipeline::Create(&data_set, options);
  EXPECT_THAT(pipeline, IsOk());
  (*pipeline)->SetLeases(EverySecond(options.step_rows()), {});
  return *std::move(pipeline);
}

// The labels of the next `steps` batches.
std::vector<int32_t> Read(InputPipeline& pipeline, int steps) {
  std::vector<int32_t> labels;
  for (int i = 0; i < steps; ++i) {
    const absl::StatusOr<absl::Span<const Batch>> batches = pipeline.Next();
    EXPECT_THAT(batches, IsOk());
    for (const Batch& batch : *batches) {
      labels.insert(labels.end(), batch.labels().begin(), batch.labels().end());
    }
  }
  return labels;
}

class InputPipelineTest : public testing::Test {
 protected:
  const CountingDataSet data_set_ = CountingDataSet(100);
};

TEST_F(InputPipelineTest, FollowsItsLeasesOverEpochs) {
  for (const int64_t prefetch : {0, 2}) {
    const auto pipeline = Make(data_set_, Options(prefetch));
    EXPECT_EQ(pipeline->epoch_rows(), 100);
    for (int step = 0; step < 30; ++step) {
      EXPECT_EQ(pipeline->num_leases(), kSteps - step);
      const std::vector<int32_t> labels = Read(*pipeline, 1);
      for (int i = 0; i < 4; ++i) {
        const int64_t place = 8 * step + 4 + i;
        const auto order = EpochPermutation(100, 7, place / 100, true);
        EXPECT_EQ(labels[i], order[place % 100]) << place;
      }
    }
    EXPECT_EQ(pipeline->pass(), std::nullopt);
  }
}

// Its rows come when it is told, as those of a disk that hangs.
class StalledDataSet : public CountingDataSet {
 public:
  explicit StalledDataSet(const absl::Notification* goes_on)
      : CountingDataSet(100), goes_on_(*goes_on) {}
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    goes_on_.WaitForNotification();
    return CountingDataSet::Read(index, into);
  }

 private:
  const absl::Notification& goes_on_;
};

TEST_F(InputPipelineTest, AStopEndsTheWaitForRows) {
  absl::Notification goes_on;
  const StalledDataSet stalled(&goes_on);
  const auto pipeline = Make(stalled, Options(2));
  absl::Status status;
  std::thread waits([&] { status = pipeline->Next().status(); });
  pipeline->Stop();
  waits.join();
  EXPECT_TRUE(IsStopped(status)) << status;
  EXPECT_TRUE(IsStopped(pipeline->Next().status()));
  goes_on.Notify();
}

TEST_F(InputPipelineTest, OrderDoesNotDependOnPrefetch) {
  const std::vector<int32_t> inline_labels =
      Read(*Make(data_set_, Options(0)), 40);
  for (const int64_t prefetch : {1, 2, 7}) {
    EXPECT_EQ(Read(*Make(data_set_, Options(prefetch)), 40), inline_labels);
  }
}

TEST_F(InputPipelineTest, OrderDoesNotDependOnThreads) {
  const std::vector<int32_t> of_one = Read(*Make(data_set_, Options(2)), 40);
  for (const int threads : {2, 3, 16}) {
    for (const int64_t prefetch : {0, 2}) {
      InputPipeline::Options options = Options(prefetch);
      options.threads = threads;
      EXPECT_EQ(Read(*Make(data_set_, options), 40), of_one);
    }
  }
}

TEST_F(InputPipelineTest, PeekShowsWhatNextReturns) {
  const auto pipeline = Make(data_set_, Options(2));
  for (int step = 0; step < 10; ++step) {
    InputPipeline::PreparedStep shown = pipeline->Peek();
    // The thread will come to it.
    while (shown.batches.empty()) {
      std::this_thread::yield();
      shown = pipeline->Peek();
    }
    const int64_t id = shown.batches.front().id;
    EXPECT_NE(id, 0);
    EXPECT_EQ(shown.lease, EverySecond(4)[step]);
    const auto next = pipeline->Next();
    ASSERT_THAT(next, IsOk());
    EXPECT_EQ(next->data(), shown.batches.data());
    EXPECT_EQ(next->front().id, id);
  }
}

TEST_F(InputPipelineTest, RefusesWhatNoMemoryHolds) {
  const CountingDataSet data_set(int64_t{1} << 50);
  EXPECT_THAT(
      InputPipeline::Create(&data_set, Options(2)),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("the order of 1125899906842624 training examples "
                    "in 2 epochs wants 18014398509481984 bytes of memory")));
  InputPipeline::Options options = Options(1024);
  options.batch_size = int64_t{1} << 40;
  EXPECT_THAT(InputPipeline::Create(&data_set, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows in batches, with input.prefetch=1024, "
                                 "wants ")));
}

TEST_F(InputPipelineTest, NothingIsPreparedWithoutPrefetch) {
  const auto pipeline = Make(data_set_, Options(0));
  EXPECT_TRUE(pipeline->Peek().batches.empty());
  ASSERT_THAT(pipeline->Next(), IsOk());
  EXPECT_TRUE(pipeline->Peek().batches.empty());
}

TEST_F(InputPipelineTest, KeepsABatchWholeUntilTheNextCall) {
  const auto pipeline = Make(data_set_, Options(3));
  for (int step = 0; step < 50; ++step) {
    const absl::StatusOr<absl::Span<const Batch>> batches = pipeline->Next();
    ASSERT_THAT(batches, IsOk());
    ASSERT_EQ(batches->size(), 1);
    const Batch& batch = batches->front();
    ASSERT_EQ(batch.rows, 4);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(batch.input()[2 * i], batch.labels()[i]);
    }
  }
}

TEST_F(InputPipelineTest, RecyclesItsBuffers) {
  const auto pipeline = Make(data_set_, Options(3));
  std::set<const Batch*> buffers;
  for (int step = 0; step < 100; ++step) {
    buffers.insert(pipeline->Next()->data());
  }
  EXPECT_LE(buffers.size(), 4);
}

TEST_F(InputPipelineTest, DividesTheRowsOfAStepIntoItsBatches) {
  InputPipeline::Options large = Options(2);
  large.batch_size = 12;
  InputPipeline::Options divided = Options(2);
  divided.batch_size = 4;
  divided.batches_per_step = 3;
  const auto pipeline = Make(data_set_, divided);
  EXPECT_EQ(pipeline->Next()->size(), 3);
  EXPECT_EQ(Read(*Make(data_set_, divided), 10),
            Read(*Make(data_set_, large), 10));
}

TEST_F(InputPipelineTest, PreparesWholeStepsAhead) {
  // 3 of a tower's batches ahead are 2 steps of 2.
  InputPipeline::Options options = Options(3);
  options.batch_size = 1;
  options.batches_per_step = 4;
  options.batches_per_tower = 2;
  const auto pipeline = Make(data_set_, options);
  std::set<const Batch*> buffers;
  for (int step = 0; step < 50; ++step) {
    buffers.insert(pipeline->Next()->data());
  }
  EXPECT_LE(buffers.size(), 3);
}

// A file whose rows from one on cannot be read.
class TornDataSet : public CountingDataSet {
 public:
  explicit TornDataSet(int64_t torn) : CountingDataSet(100), torn_(torn) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    if (index < torn_) return CountingDataSet::Read(index, into);
    return absl::DataLossError(
        absl::StrCat("row ", index, " of 'FILE' is torn"));
  }

 private:
  const int64_t torn_;
};

TEST_F(InputPipelineTest, AnErrorIsThatOfItsLease) {
  const TornDataSet data_set(60);
  for (const int64_t prefetch : {0, 1, 3}) {
    InputPipeline::Options options = Options(prefetch);
    options.shuffle = false;
    options.threads = 1 + static_cast<int>(prefetch);
    const auto pipeline = Make(data_set, options);
    const RowLease torn = LeaseOf({{58, 4}});
    const RowLease good = LeaseOf({{20, 4}});
    pipeline->SetLeases({good, torn, good, torn}, {});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Read(*pipeline, 1), (std::vector<int32_t>{20, 21, 22, 23}));
      EXPECT_THAT(pipeline->Next(),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("row 60")));
    }
    EXPECT_EQ(pipeline->num_leases(), 0);
  }
}

TEST_F(InputPipelineTest, APreparedErrorIsNotShown) {
  const TornDataSet data_set(0);
  const auto pipeline = Make(data_set, Options(2));
  EXPECT_FALSE(pipeline->Next().ok());
  EXPECT_TRUE(pipeline->Peek().batches.empty());
}

// A file with bad rows.
class SpottedDataSet : public CountingDataSet {
 public:
  explicit SpottedDataSet(std::set<int64_t> bad)
      : CountingDataSet(100), bad_(std::move(bad)) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    if (bad_.count(index) == 0) return CountingDataSet::Read(index, into);
    into.values[0] = -1;
    return absl::InvalidArgumentError(
        absl::StrCat("row ", index, " of 'FILE' is bad"));
  }

 private:
  const std::set<int64_t> bad_;
};

class SkippingPipelineTest : public InputPipelineTest {
 protected:
  InputPipeline::Options Skipping() {
    InputPipeline::Options options = Options(2);
    options.bad_records = &bad_records_;
    return options;
  }

  ReportedLines lines_;
  BadRecords bad_records_{lines_.reporter()};
};

TEST_F(SkippingPipelineTest, TheNextGoodRowTakesTheBadOnesPlace) {
  const SpottedDataSet data_set({5, 7, 8});
  InputPipeline::Options options = Skipping();
  options.shuffle = false;
  // Rows 4 to 7, of which 7's next is the other worker's.
  EXPECT_EQ(Read(*Make(data_set, options), 1),
            (std::vector<int32_t>{4, 6, 6, 9}));
}

TEST_F(SkippingPipelineTest, ARowThatIsBadEachTimeIsToldOnce) {
  const SpottedDataSet data_set({1, 2});
  InputPipeline::Options options = Skipping();
  options.prefetch = 0;
  options.shuffle = false;
  const auto pipeline = Make(data_set, options);
  pipeline->SetLeases(LeasesFrom(0, 4, 26, 4), {});
  Read(*pipeline, 26);
  EXPECT_EQ(bad_records_.count(), 4);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("W skipped a bad record: row 1 of 'FILE' is bad",
                          "W skipped a bad record: row 2 of 'FILE' is bad"));
}

TEST_F(SkippingPipelineTest, TheRowsDoNotDependOnThreads) {
  std::set<int64_t> bad;
  for (int64_t row = 0; row < 100; row += 3) bad.insert(row);
  const SpottedDataSet data_set(bad);
  const std::vector<int32_t> of_one = Read(*Make(data_set, Skipping()), 30);
  InputPipeline::Options options = Skipping();
  options.threads = 3;
  EXPECT_EQ(Read(*Make(data_set, options), 30), of_one);
  // Only the first ones are told.
  EXPECT_THAT(lines_.lines(), SizeIs(5));
  EXPECT_GT(bad_records_.count(), 50);
}

TEST_F(SkippingPipelineTest, AllBadRowsAreAnError) {
  std::set<int64_t> bad;
  for (int64_t row = 0; row < 100; ++row) bad.insert(row);
  const SpottedDataSet data_set(bad);
  EXPECT_THAT(Make(data_set, Skipping())->Next(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("100 rows one after the other are bad"),
                             HasSubstr("'FILE'"))));
}

TEST_F(SkippingPipelineTest, AFileThatCannotBeReadIsNoBadRecord) {
  class LostDataSet : public CountingDataSet {
   public:
    using CountingDataSet::CountingDataSet;
    absl::Status Read(int64_t, const ExampleMemory&) const override {
      return absl::UnavailableError("read error");
    }
  };
  EXPECT_THAT(Make(LostDataSet(100), Skipping())->Next(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(bad_records_.count(), 0);
}

TEST_F(InputPipelineTest, EndsInAnyState) {
  for (int steps = 0; steps < 5; ++steps) {
    InputPipeline::Options options = Options(2);
    options.threads = 1 + steps % 3;
    Read(*Make(data_set_, options), steps);
  }
}

TEST_F(InputPipelineTest, RefusesOptionsOutOfRange) {
  InputPipeline::Options options = Options(-1);
  EXPECT_THAT(InputPipeline::Create(&data_set_, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input.prefetch")));
  options = Options(1);
  options.batch_size = 0;
  EXPECT_THAT(InputPipeline::Create(&data_set_, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input.batch_size")));
  options = Options(1);
  options.threads = 257;
  EXPECT_THAT(
      InputPipeline::Create(&data_set_, options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input.threads")));
  options = Options(1);
  options.batches_per_step = 0;
  EXPECT_THAT(InputPipeline::Create(&data_set_, options),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
