#include "worker/input/streamed_rows.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/rows/row_ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/leases.h"
#include "tests/worker/input/stream/counting_stream.h"
#include "worker/input/input_pipeline.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 100;

// What was asked of a stream.
struct Asked {
  int begins = 0;
  int rows = 0;
  // The one that fails, counted as they are; 0: none.
  int failing_row = 0;
};

class WatchedStream : public CountingStream {
 public:
  WatchedStream(int64_t rows, std::set<int64_t> bad, Asked* asked)
      : CountingStream(rows, std::move(bad)), asked_(asked) {}

  absl::Status Begin() override {
    ++asked_->begins;
    return CountingStream::Begin();
  }
  absl::StatusOr<bool> Next(StreamRecord* record) override {
    if (++asked_->rows == asked_->failing_row) {
      return absl::UnavailableError("read error");
    }
    return CountingStream::Next(record);
  }

 private:
  Asked* const asked_;
};

StepSource::Options Options(int64_t batch_size) {
  StepSource::Options options;
  options.seed = 7;
  options.batch_size = batch_size;
  options.shuffle_buffer = 16;
  return options;
}

StepSource::Options Unshuffled(int64_t batch_size) {
  StepSource::Options options = Options(batch_size);
  options.shuffle_buffer = 0;
  return options;
}

// A source with the batches of a step.
class Reader {
 public:
  explicit Reader(const StepSource::Options& options,
                  std::set<int64_t> bad = {}, int64_t rows = kRows)
      : source_(std::make_unique<WatchedStream>(rows, std::move(bad), &asked_),
                options) {
    for (int64_t i = 0; i < options.batches_per_step; ++i) {
      batches_.push_back(source_.MakeBatch());
    }
  }

  absl::Status Fill(const RowLease& lease) {
    return source_.Fill(lease, absl::MakeSpan(batches_));
  }
  std::vector<int32_t> Read(const RowLease& lease) {
    EXPECT_THAT(Fill(lease), IsOk());
    std::vector<int32_t> labels;
    for (const Batch& batch : batches_) {
      labels.insert(labels.end(), batch.labels().begin(), batch.labels().end());
      for (size_t row = 0; row < batch.labels().size(); ++row) {
        EXPECT_EQ(batch.input()[2 * row], batch.labels()[row]);
      }
    }
    return labels;
  }
  StreamedRows& source() { return source_; }
  Asked& asked() { return asked_; }

 private:
  Asked asked_;
  StreamedRows source_;
  std::vector<Batch> batches_;
};

TEST(StreamedRowsTest, WithoutABufferItIsTheDataSetInOrder) {
  StepSource::Options options = Unshuffled(5);
  options.batches_per_step = 2;
  Reader reader(options);
  for (const RowLease& lease : LeasesFrom(10, 10, 12, 20)) {
    std::vector<int32_t> wanted;
    for (int64_t i = 0; i < 10; ++i)
      wanted.push_back(PlaceOf(lease, i) % kRows);
    EXPECT_EQ(reader.Read(lease), wanted);
  }
  EXPECT_EQ(reader.source().epoch_rows(), 0);
}

// Steps of 9 and 21 rows, which divide no pass.
TEST(StreamedRowsTest, LeasesOfAllWorkers_HaveEachRowOnceAPass) {
  Reader small(Options(9));
  Reader large(Options(21));
  std::vector<int32_t> rows;
  const auto add = [&](const std::vector<int32_t>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  for (int64_t place = 0; place < 2 * kRows; place += 30) {
    add(small.Read(LeaseOf({{place, 9}})));
    add(large.Read(LeaseOf({{place + 9, 21}})));
  }
  for (int pass = 0; pass < 2; ++pass) {
    const std::set<int32_t> distinct(rows.begin() + pass * kRows,
                                     rows.begin() + (pass + 1) * kRows);
    EXPECT_EQ(distinct.size(), kRows) << pass;
  }
  // Who has other steps sees the same rows.
  Reader alone(Options(7));
  for (int64_t place = 0; place < 2 * kRows; place += 7) {
    EXPECT_EQ(
        alone.Read(LeaseOf({{place, 7}})),
        std::vector<int32_t>(rows.begin() + place, rows.begin() + place + 7));
  }
}

TEST(StreamedRowsTest, LeasesAhead_AreReadForward) {
  Reader reader(Unshuffled(4));
  EXPECT_THAT(reader.Read(LeaseOf({{3, 4}})), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(reader.Read(LeaseOf({{40, 2}, {97, 2}})),
              ElementsAre(40, 41, 97, 98));
  EXPECT_EQ(reader.asked().begins, 1);
}

TEST(StreamedRowsTest, LeaseOverAPassesEnd_HasOtherRowsOfTheNextPass) {
  Reader reader(Unshuffled(4));
  reader.Read(LeaseOf({{90, 4}}));
  ASSERT_TRUE(reader.source().pass().has_value());
  EXPECT_EQ(reader.source().pass()->pass(), 0);
  EXPECT_THAT(reader.Read(LeaseOf({{98, 4}})), ElementsAre(98, 99, 0, 1));
  EXPECT_EQ(reader.source().pass()->pass(), 1);
  EXPECT_EQ(reader.source().pass()->first(), kRows);
}

TEST(StreamedRowsTest, LeaseThatIsBehind_IsReadFromItsPassOn) {
  Reader reader(Options(4));
  const RowLease returned = LeaseOf({{250, 2}, {280, 2}});
  const auto rows = reader.Read(returned);
  const auto next = reader.Read(LeaseOf({{320, 4}}));
  const int before = reader.asked().rows;
  EXPECT_EQ(reader.Read(returned), rows);
  EXPECT_LE(reader.asked().rows - before, kRows) << "from place 200 on";
  EXPECT_EQ(reader.source().pass()->pass(), 3) << "the newest";
  EXPECT_EQ(reader.Read(LeaseOf({{320, 4}})), next);
}

TEST(StreamedRowsTest, SetPass_SparesThePassesBeforeIt) {
  Reader whole(Options(4));
  Reader joined(Options(4));
  joined.source().SetPass(PassOf(3, 300));
  EXPECT_EQ(joined.source().pass(), std::nullopt);
  EXPECT_EQ(joined.Read(LeaseOf({{310, 4}})), whole.Read(LeaseOf({{310, 4}})));
  EXPECT_EQ(joined.asked().begins, 1);
  EXPECT_LE(joined.asked().rows, 10 + 4 + 16);
  EXPECT_EQ(joined.source().pass()->first(), 300);
  // And forward, of who has begun.
  joined.source().SetPass(PassOf(5, 500));
  EXPECT_EQ(joined.Read(LeaseOf({{502, 4}})), whole.Read(LeaseOf({{502, 4}})));
  EXPECT_EQ(joined.asked().begins, 2);
  // Behind all that it knows.
  EXPECT_EQ(joined.Read(LeaseOf({{20, 4}})), whole.Read(LeaseOf({{20, 4}})));
}

// Also when old passes are forgotten.
TEST(StreamedRowsTest, SetPassThatIsNone_ChangesNothing) {
  Reader reader(Unshuffled(2), {}, /*rows=*/10);
  reader.source().SetPass(PassOf(-1, 3));
  reader.source().SetPass(PassOf(0, 7));
  for (const RowLease& lease : LeasesFrom(0, 2, 100, 10)) reader.Read(lease);
  EXPECT_THAT(reader.Read(LeaseOf({{5, 2}})), ElementsAre(5, 6));
}

TEST(StreamedRowsTest, PassesThatAreForgotten_AreReadAgain) {
  Reader reader(Unshuffled(2), {}, /*rows=*/10);
  for (const RowLease& lease : LeasesFrom(0, 2, 100, 10)) reader.Read(lease);
  EXPECT_THAT(reader.Read(LeaseOf({{15, 2}})), ElementsAre(5, 6));
  EXPECT_THAT(reader.Read(LeaseOf({{985, 2}})), ElementsAre(5, 6));
}

TEST(StreamedRowsTest, FilesThatHaveBecomeShorter_AreGoneOnWithInTheNextPass) {
  Reader reader(Unshuffled(5), {}, /*rows=*/40);
  reader.source().SetPass(PassOf(3, 300));
  EXPECT_THAT(reader.Read(LeaseOf({{390, 5}})),
              ElementsAre(10, 11, 12, 13, 14));
  EXPECT_EQ(reader.source().pass()->pass(), 5);
}

TEST(StreamedRowsTest, RowsDoNotDependOnThreadsOrPrefetch) {
  const auto read = [](int threads, int64_t prefetch) {
    InputPipeline::Options options;
    options.batch_size = 8;
    options.shuffle_buffer = 16;
    options.threads = threads;
    options.prefetch = prefetch;
    auto pipeline = InputPipeline::Create(
        InputData(OpenStream([] {
          return absl::StatusOr<std::unique_ptr<ExampleStream>>(
              std::make_unique<CountingStream>(kRows));
        })),
        options);
    EXPECT_THAT(pipeline, IsOk());
    (*pipeline)->SetLeases(LeasesFrom(308, 8, 30, 16), PassOf(3, 300));
    std::vector<int32_t> labels;
    for (int step = 0; step < 30; ++step) {
      const auto batches = (*pipeline)->Next();
      EXPECT_THAT(batches, IsOk());
      const auto more = batches->front().labels();
      labels.insert(labels.end(), more.begin(), more.end());
      // As of the step, not of those that are prepared ahead.
      EXPECT_EQ((*pipeline)->pass()->pass(), (315 + 16 * step) / kRows);
    }
    return labels;
  };
  const std::vector<int32_t> plain = read(1, 0);
  EXPECT_EQ(read(2, 3), plain);
  EXPECT_EQ(read(5, 1), plain);
}

TEST(StreamedRowsTest, ABadRowIsAnErrorOfItsLease) {
  Reader reader(Unshuffled(4), {3});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(reader.Fill(LeaseOf({{0, 4}})),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("row 3 of 'FILE'")));
    EXPECT_THAT(reader.Read(LeaseOf({{4, 4}})), ElementsAre(4, 5, 6, 7));
  }
}

TEST(StreamedRowsTest, AReadErrorIsThatOfItsLease) {
  Reader reader(Unshuffled(4));
  reader.asked().failing_row = 7;
  EXPECT_THAT(reader.Read(LeaseOf({{0, 4}})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(reader.Fill(LeaseOf({{4, 4}})),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(reader.Read(LeaseOf({{5, 4}})), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(reader.Read(LeaseOf({{4, 4}})), ElementsAre(4, 5, 6, 7));
}

TEST(StreamedRowsTest, AnotherRowTakesTheBadOnesPlace) {
  ReportedLines lines;
  BadRecords bad_records(lines.reporter());
  StepSource::Options options = Unshuffled(4);
  options.bad_records = &bad_records;
  // 3 is the last row of the step; 4 is bad, too.
  Reader reader(options, {1, 3, 4, 8});
  EXPECT_THAT(reader.Read(LeaseOf({{0, 4}})), ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(reader.Read(LeaseOf({{8, 4}})), ElementsAre(9, 9, 10, 11));
  EXPECT_EQ(bad_records.count(), 3);
  EXPECT_THAT(lines.lines(),
              ElementsAre("W skipped a bad record: row 1 of 'FILE' is bad",
                          "W skipped a bad record: row 3 of 'FILE' is bad",
                          "W skipped a bad record: row 8 of 'FILE' is bad"));
}

TEST(StreamedRowsTest, BadRowsAloneAreAnError) {
  BadRecords bad_records{Reporter()};
  StepSource::Options options = Options(2);
  options.bad_records = &bad_records;
  EXPECT_THAT(Reader(options, {0, 1}, /*rows=*/2).Fill(LeaseOf({{0, 2}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows one after the other are bad")));
}

TEST(StreamedRowsTest, LeaseThatIsNoSteps_IsRefused) {
  Reader reader(Options(4));
  for (const RowLease& lease :
       {LeaseOf({{0, 5}}), LeaseOf({{-4, 4}}), RowLease()}) {
    EXPECT_THAT(reader.Fill(lease),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(StreamedRowsTest, Stop_EndsReadingForward) {
  Reader reader(Options(4));
  reader.source().Stop();
  EXPECT_THAT(reader.Fill(LeaseOf({{40, 4}})),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace muster
