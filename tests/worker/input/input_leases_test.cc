// What an input pipeline keeps of what it has prepared when its worker gets
// other leases.
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/leases.h"
#include "worker/input/input_pipeline.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kBatch = 4;

RowLease StepAt(int64_t first) { return LeaseOf({{first, kBatch}}); }

// Counts how often rows are read; one may be held back.
class WatchedDataSet : public CountingDataSet {
 public:
  WatchedDataSet() : CountingDataSet(100) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    absl::MutexLock lock(&mu_);
    ++reads_[index];
    ++all_reads_;
    const auto goes_on = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return held_ != index;
    };
    mu_.Await(absl::Condition(&goes_on));
    return CountingDataSet::Read(index, into);
  }
  // -1: none.
  void HoldBack(int64_t row) {
    absl::MutexLock lock(&mu_);
    held_ = row;
  }
  int reads(int64_t row) const {
    absl::MutexLock lock(&mu_);
    return reads_[row];
  }
  // Waits until so many reads have begun.
  void AwaitReads(int number) const {
    absl::MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return all_reads_ >= number;
    };
    mu_.Await(absl::Condition(&enough));
  }

 private:
  mutable absl::Mutex mu_;
  mutable std::map<int64_t, int> reads_ ABSL_GUARDED_BY(mu_);
  mutable int all_reads_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t held_ ABSL_GUARDED_BY(mu_) = -1;
};

class InputLeasesTest : public ::testing::Test {
 protected:
  std::unique_ptr<InputPipeline> Make(int64_t prefetch) {
    InputPipeline::Options options;
    options.shuffle = false;
    options.batch_size = kBatch;
    options.prefetch = prefetch;
    auto pipeline = InputPipeline::Create(&data_set_, options);
    EXPECT_THAT(pipeline, IsOk());
    return *std::move(pipeline);
  }
  // The first rows of the next `steps` steps.
  std::vector<int32_t> Read(InputPipeline& pipeline, int steps) {
    std::vector<int32_t> first;
    for (int i = 0; i < steps; ++i) {
      const auto batches = pipeline.Next();
      EXPECT_THAT(batches, IsOk());
      if (batches.ok()) first.push_back(batches->front().labels()[0]);
    }
    return first;
  }

  WatchedDataSet data_set_;
};

TEST_F(InputLeasesTest, NextWithoutALease_IsRefused) {
  for (const int64_t prefetch : {0, 2}) {
    const auto pipeline = Make(prefetch);
    EXPECT_THAT(pipeline->Next(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    pipeline->SetLeases({StepAt(8)}, {});
    EXPECT_EQ(pipeline->num_leases(), 1);
    EXPECT_THAT(Read(*pipeline, 1), ElementsAre(8));
    EXPECT_EQ(pipeline->num_leases(), 0);
    EXPECT_THAT(pipeline->Next(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST_F(InputLeasesTest, LeasesThatStay_AreReadOnce) {
  const auto pipeline = Make(2);
  for (int64_t step = 0; step < 20; ++step) {
    pipeline->SetLeases(
        {StepAt(4 * step), StepAt(4 * step + 4), StepAt(4 * step + 8)}, {});
    EXPECT_THAT(Read(*pipeline, 1), ElementsAre(4 * step));
  }
  for (int64_t row = 0; row < 80; ++row) EXPECT_EQ(data_set_.reads(row), 1);
}

TEST_F(InputLeasesTest, LeasesThatAreGone_AreLeftOut) {
  const auto pipeline = Make(2);
  pipeline->SetLeases({StepAt(0), StepAt(4), StepAt(8)}, {});
  data_set_.AwaitReads(12);
  pipeline->SetLeases({StepAt(4), StepAt(12)}, {});
  EXPECT_THAT(Read(*pipeline, 2), ElementsAre(4, 12));
  EXPECT_EQ(data_set_.reads(4), 1) << "it was prepared";
}

TEST_F(InputLeasesTest, LeasesInAnotherOrder_AreReadInThat) {
  const auto pipeline = Make(2);
  pipeline->SetLeases({StepAt(0), StepAt(4), StepAt(8)}, {});
  data_set_.AwaitReads(12);
  pipeline->SetLeases({StepAt(8), StepAt(0)}, {});
  EXPECT_THAT(Read(*pipeline, 2), ElementsAre(8, 0));
  EXPECT_EQ(data_set_.reads(8), 1);
}

// All batches are full when one is wanted before them.
TEST_F(InputLeasesTest, LeasesBeforePreparedOnes_TakeThePlaceOfTheLast) {
  const auto pipeline = Make(2);
  pipeline->SetLeases({StepAt(0), StepAt(4), StepAt(8)}, {});
  data_set_.AwaitReads(12);
  pipeline->SetLeases({StepAt(20), StepAt(0), StepAt(4), StepAt(8)}, {});
  EXPECT_THAT(Read(*pipeline, 4), ElementsAre(20, 0, 4, 8));
  EXPECT_EQ(data_set_.reads(0), 1);
  EXPECT_EQ(data_set_.reads(4), 1);
  EXPECT_EQ(data_set_.reads(8), 2);
}

// One of which the caller has.
TEST_F(InputLeasesTest, LeasesBeforePreparedOnes_LeaveTheCallersBatches) {
  const auto pipeline = Make(2);
  pipeline->SetLeases({StepAt(0), StepAt(4), StepAt(8)}, {});
  data_set_.AwaitReads(12);
  const auto current = pipeline->Next();
  ASSERT_THAT(current, IsOk());
  pipeline->SetLeases({StepAt(20), StepAt(24), StepAt(4), StepAt(8)}, {});
  data_set_.AwaitReads(20);
  EXPECT_EQ(current->front().labels()[0], 0);
  EXPECT_THAT(Read(*pipeline, 4), ElementsAre(20, 24, 4, 8));
}

TEST_F(InputLeasesTest, LeaseThatGoesWhileItIsPrepared_IsDropped) {
  const auto pipeline = Make(1);
  data_set_.HoldBack(1);
  pipeline->SetLeases({StepAt(0), StepAt(4)}, {});
  data_set_.AwaitReads(2);
  pipeline->SetLeases({StepAt(8)}, {});
  EXPECT_TRUE(pipeline->Peek().batches.empty());
  data_set_.HoldBack(-1);
  EXPECT_THAT(Read(*pipeline, 1), ElementsAre(8));
  // Its batches are used again.
  for (int64_t step = 0; step < 10; ++step) {
    pipeline->SetLeases({StepAt(40), StepAt(44), StepAt(48)}, {});
    EXPECT_THAT(Read(*pipeline, 3), ElementsAre(40, 44, 48));
  }
}

TEST_F(InputLeasesTest, LeaseThatStaysWhileItIsPrepared_IsReadOnce) {
  const auto pipeline = Make(2);
  data_set_.HoldBack(1);
  pipeline->SetLeases({StepAt(0), StepAt(4)}, {});
  data_set_.AwaitReads(2);
  pipeline->SetLeases({StepAt(0), StepAt(8)}, {});
  data_set_.HoldBack(-1);
  EXPECT_THAT(Read(*pipeline, 2), ElementsAre(0, 8));
  EXPECT_EQ(data_set_.reads(0), 1);
  EXPECT_EQ(data_set_.reads(4), 0);
}

TEST_F(InputLeasesTest, LeaseOfAnotherNumberOfRows_IsAnErrorOfItsOwn) {
  for (const int64_t prefetch : {0, 2}) {
    const auto pipeline = Make(prefetch);
    pipeline->SetLeases({LeaseOf({{0, 3}}), StepAt(4)}, {});
    EXPECT_THAT(pipeline->Next(), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(Read(*pipeline, 1), ElementsAre(4));
  }
}

}  // namespace
}  // namespace muster
