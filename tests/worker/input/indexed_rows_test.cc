#include "worker/input/indexed_rows.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/leases.h"
#include "worker/input/data_order.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int64_t kRows = 100;
constexpr uint64_t kSeed = 7;

// A row, and the epoch that it was varied for.
using VariedRow = std::pair<int64_t, int64_t>;

class VariedDataSet : public CountingDataSet {
 public:
  explicit VariedDataSet(std::set<int64_t> bad = {})
      : CountingDataSet(kRows), bad_(std::move(bad)) {}

  absl::Status ReadInEpoch(int64_t index, int64_t epoch,
                           const ExampleMemory& into) const override {
    if (bad_.count(index) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", index, " of 'FILE' is bad"));
    }
    RETURN_IF_ERROR(Read(index, into));
    into.values[1] = static_cast<float>(epoch);
    return absl::OkStatus();
  }

 private:
  const std::set<int64_t> bad_;
};

StepSource::Options Options(int64_t batch_size) {
  StepSource::Options options;
  options.seed = kSeed;
  options.batch_size = batch_size;
  return options;
}

// A source with the batches of a step.
class Reader {
 public:
  Reader(const DataSet* data_set, const StepSource::Options& options) {
    auto source = IndexedRows::Create(data_set, options);
    EXPECT_THAT(source, IsOk());
    source_ = *std::move(source);
    for (int64_t i = 0; i < options.batches_per_step; ++i) {
      batches_.push_back(source_->MakeBatch());
    }
  }

  absl::Status Fill(const RowLease& lease) {
    return source_->Fill(lease, absl::MakeSpan(batches_));
  }
  std::vector<VariedRow> Read(const RowLease& lease) {
    EXPECT_THAT(Fill(lease), IsOk());
    std::vector<VariedRow> rows;
    for (const Batch& batch : batches_) {
      for (int64_t i = 0; i < batch.rows; ++i) {
        EXPECT_EQ(batch.input()[2 * i], batch.labels()[i]);
        rows.emplace_back(batch.labels()[i], batch.input()[2 * i + 1]);
      }
    }
    return rows;
  }

 private:
  std::unique_ptr<StepSource> source_;
  std::vector<Batch> batches_;
};

VariedRow RowAt(int64_t place) {
  const int64_t epoch = place / kRows;
  return {EpochPermutation(kRows, kSeed, epoch, true)[place % kRows], epoch};
}

// What worker `worker` of `workers` had in step `step` of the first epoch when
// workers strode through it in lock-step.
std::vector<VariedRow> RowsInLockStep(int64_t worker, int64_t workers,
                                      int64_t rows, int64_t step) {
  const auto order = EpochPermutation(kRows, kSeed, 0, true);
  const auto first = order.begin() + (step * workers + worker) * rows;
  std::vector<VariedRow> taken;
  for (auto row = first; row != first + rows; ++row)
    taken.emplace_back(*row, 0);
  return taken;
}

class IndexedRowsTest : public ::testing::Test {
 protected:
  const VariedDataSet data_set_;
};

TEST_F(IndexedRowsTest, LeasesInOrder_AreTheStepsOfWorkersInLockStep) {
  for (const int64_t workers : {1, 3}) {
    for (int64_t worker = 0; worker < workers; ++worker) {
      StepSource::Options options = Options(4);
      options.batches_per_step = 2;
      options.threads = 3;
      Reader reader(&data_set_, options);
      const int64_t stride = 8 * workers;
      const auto leases = LeasesFrom(worker * 8, 8, kRows / stride, stride);
      for (size_t step = 0; step < leases.size(); ++step) {
        EXPECT_EQ(reader.Read(leases[step]),
                  RowsInLockStep(worker, workers, 8, step));
      }
    }
  }
}

TEST_F(IndexedRowsTest, LeaseOverAnEpochsEnd_HasOtherRowsOfTheNextEpoch) {
  Reader reader(&data_set_, Options(4));
  EXPECT_THAT(reader.Read(LeaseOf({{97, 4}})),
              ElementsAre(RowAt(97), RowAt(98), RowAt(99), RowAt(100)));
  EXPECT_EQ(RowAt(100).second, 1);
}

TEST_F(IndexedRowsTest, LeasesThroughEpochs_HaveEachRowOnceAnEpoch) {
  Reader reader(&data_set_, Options(12));
  std::set<VariedRow> rows;
  for (const RowLease& lease : LeasesFrom(0, 12, 25, 12)) {
    for (const VariedRow& row : reader.Read(lease)) {
      EXPECT_TRUE(rows.insert(row).second) << row.first << " " << row.second;
    }
  }
  EXPECT_EQ(rows.size(), 3 * kRows);
}

// Of more epochs than orders are kept of.
TEST_F(IndexedRowsTest, LeaseOfPieces_HasTheirRowsInItsOrder) {
  for (const int threads : {1, 3}) {
    StepSource::Options options = Options(3);
    options.batches_per_step = 2;
    options.threads = threads;
    Reader reader(&data_set_, options);
    EXPECT_THAT(reader.Read(LeaseOf({{301, 2}, {20, 1}, {199, 2}, {40, 1}})),
                ElementsAre(RowAt(301), RowAt(302), RowAt(20), RowAt(199),
                            RowAt(200), RowAt(40)));
  }
}

TEST_F(IndexedRowsTest, ReturnedLeaseOfTheFormerEpoch_HasItsRowsAgain) {
  Reader reader(&data_set_, Options(4));
  const RowLease returned = LeaseOf({{52, 4}});
  const auto rows = reader.Read(returned);
  reader.Read(LeaseOf({{120, 4}}));
  EXPECT_EQ(reader.Read(returned), rows);
  EXPECT_THAT(reader.Read(LeaseOf({{124, 4}})),
              ElementsAre(RowAt(124), RowAt(125), RowAt(126), RowAt(127)));
}

TEST_F(IndexedRowsTest, BadRowAtAnEpochsEnd_IsReplacedByARowOfItsEpoch) {
  const VariedDataSet data_set({99});
  ReportedLines lines;
  BadRecords bad_records(lines.reporter());
  StepSource::Options options = Options(4);
  options.shuffle = false;
  options.bad_records = &bad_records;
  EXPECT_THAT(Reader(&data_set, options).Read(LeaseOf({{98, 4}})),
              ElementsAre(Pair(98, 0), Pair(0, 0), Pair(0, 1), Pair(1, 1)));
}

TEST_F(IndexedRowsTest, ErrorsOverAnEpochsEnd_AreThatOfTheFirstRow) {
  const VariedDataSet data_set({1, 99});
  StepSource::Options options = Options(4);
  options.shuffle = false;
  options.threads = 3;
  EXPECT_THAT(Reader(&data_set, options).Fill(LeaseOf({{98, 4}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("row 99 of 'FILE'")));
}

TEST_F(IndexedRowsTest, LeaseThatIsNoSteps_IsRefused) {
  Reader reader(&data_set_, Options(4));
  EXPECT_THAT(reader.Fill(LeaseOf({{8, 2}, {20, 3}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("wanted 4, leased are 5"),
                             HasSubstr("rows 8 to 9, 20 to 22"))));
  EXPECT_THAT(reader.Fill(LeaseOf({{-4, 4}})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(reader.Fill(RowLease()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(IndexedRowsTest, SetSmallerThanAStep_IsToldTheBatchThatFits) {
  StepSource::Options options = Options(40);
  options.batches_per_step = 3;
  EXPECT_THAT(IndexedRows::Create(&data_set_, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("wants 3 * 40 training examples"),
                             HasSubstr("the data set has 100"),
                             HasSubstr("--set=input.batch_size=33,"),
                             HasSubstr("--set=input.global_batch_size=99"))));
  options.batch_size = 33;
  EXPECT_THAT(IndexedRows::Create(&data_set_, options), IsOk());
  options.batches_per_step = 101;
  EXPECT_THAT(
      IndexedRows::Create(&data_set_, options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fewer towers")));
  options.batches_per_step = int64_t{1} << 62;
  EXPECT_FALSE(IndexedRows::Create(&data_set_, options).ok());
}

}  // namespace
}  // namespace muster
