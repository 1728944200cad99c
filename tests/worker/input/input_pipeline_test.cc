#include "worker/input/input_pipeline.h"

#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/stopped_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
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
  options.worker_index = 1;
  options.num_workers = 2;
  options.prefetch = prefetch;
  return options;
}

std::unique_ptr<InputPipeline> Make(const DataSet& data_set,
                                    const InputPipeline::Options& options) {
  auto pipeline = InputPipeline::Create(&data_set, options);
  EXPECT_THAT(pipeline, IsOk());
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

TEST_F(InputPipelineTest, FollowsTheDataOrderOverEpochs) {
  DataOrder::Options options;
  options.seed = 7;
  options.batch_size = 4;
  options.worker_index = 1;
  options.num_workers = 2;
  auto order = DataOrder::Create(100, options);
  ASSERT_THAT(order, IsOk());
  const auto pipeline = Make(data_set_, Options(2));
  EXPECT_EQ(pipeline->steps_per_epoch(), 12);
  RowPosition position;
  for (int step = 0; step < 30; ++step) {
    const std::vector<int32_t> labels = Read(*pipeline, 1);
    const auto rows = order->Rows(position);
    EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()),
              std::vector<int64_t>(rows.begin(), rows.end()));
    position = order->After(position);
    EXPECT_TRUE(pipeline->IsAt(MakeDataPosition(position, 8)));
    EXPECT_EQ(pipeline->step_number(), step + 1);
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
    EXPECT_EQ(pipeline->step_number(), step);
    EXPECT_EQ(shown.number, step + 1);
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
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the order of 1125899906842624 training examples "
                         "wants 9007199254740992 bytes of memory")));
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

TEST_F(InputPipelineTest, GoesOnFromASavedPosition) {
  for (const int64_t prefetch : {0, 3}) {
    const auto whole = Make(data_set_, Options(prefetch));
    Read(*whole, 17);
    // An epoch is 12 steps of 8 rows.
    const DataPosition position = whole->position();
    EXPECT_EQ(position.kind(), "rows");
    EXPECT_EQ(position.epoch(), 1);
    EXPECT_EQ(position.rows(), 5 * 8);
    EXPECT_EQ(position.step_rows(), 8);
    InputPipeline::Options options = Options(prefetch);
    options.start = position;
    const auto rest = Make(data_set_, options);
    EXPECT_TRUE(rest->IsAt(position));
    EXPECT_EQ(rest->step_number(), 17);
    EXPECT_EQ(Read(*rest, 20), Read(*whole, 20));
  }
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
  EXPECT_EQ(pipeline->steps_per_epoch(), 4);
  EXPECT_EQ(pipeline->Next()->size(), 3);
  EXPECT_EQ(pipeline->position().rows(), 2 * 12);
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

TEST_F(InputPipelineTest, AnErrorComesAtItsStepAndStays) {
  const TornDataSet data_set(60);
  for (const int64_t prefetch : {0, 1, 3}) {
    InputPipeline::Options options = Options(prefetch);
    options.shuffle = false;
    options.threads = 1 + static_cast<int>(prefetch);
    const auto pipeline = Make(data_set, options);
    // Steps of two workers have eight rows; 60 is in the eighth, the second
    // worker's.
    Read(*pipeline, 7);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(pipeline->Next(),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("row 60")));
      EXPECT_TRUE(pipeline->Peek().batches.empty());
    }
  }
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
  options.num_workers = 1;
  options.worker_index = 0;
  Read(*Make(data_set, options), 26);
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
  options.start = MakeDataPosition({0, -1}, 8);
  EXPECT_THAT(
      InputPipeline::Create(&data_set_, options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("data position")));
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
