#include "worker/input/streamed_rows.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/stream/counting_stream.h"
#include "worker/input/input_pipeline.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 100;

InputData Stream(int64_t rows = kRows, std::set<int64_t> bad = {}) {
  return InputData(OpenStream([rows, bad] {
    return absl::StatusOr<std::unique_ptr<ExampleStream>>(
        std::make_unique<CountingStream>(rows, bad));
  }));
}

InputPipeline::Options Options(int64_t worker, int64_t workers,
                               int64_t batch_size) {
  InputPipeline::Options options;
  options.seed = 7;
  options.batch_size = batch_size;
  options.worker_index = worker;
  options.num_workers = workers;
  options.shuffle_buffer = 16;
  return options;
}

std::unique_ptr<InputPipeline> Make(const InputData& data,
                                    const InputPipeline::Options& options) {
  auto pipeline = InputPipeline::Create(data, options);
  EXPECT_THAT(pipeline, IsOk());
  return *std::move(pipeline);
}

std::vector<int32_t> Read(InputPipeline& pipeline, int steps) {
  std::vector<int32_t> labels;
  for (int i = 0; i < steps; ++i) {
    const auto batches = pipeline.Next();
    EXPECT_THAT(batches, IsOk());
    for (const Batch& batch : *batches) {
      labels.insert(labels.end(), batch.labels().begin(), batch.labels().end());
      for (size_t row = 0; row < batch.labels().size(); ++row) {
        EXPECT_EQ(batch.input()[2 * row], batch.labels()[row]);
      }
    }
  }
  return labels;
}

// The rows of workers in lock-step in `steps` steps, step after step.
std::vector<int32_t> ReadTogether(int64_t workers, int64_t batch_size,
                                  int steps, DataPosition* position) {
  std::vector<std::unique_ptr<InputPipeline>> pipelines;
  for (int64_t i = 0; i < workers; ++i) {
    InputPipeline::Options options = Options(i, workers, batch_size);
    options.start = *position;
    pipelines.push_back(Make(Stream(), options));
  }
  std::vector<int32_t> rows;
  for (int step = 0; step < steps; ++step) {
    for (auto& pipeline : pipelines) {
      const std::vector<int32_t> own = Read(*pipeline, 1);
      rows.insert(rows.end(), own.begin(), own.end());
    }
  }
  *position = pipelines.front()->position();
  for (auto& pipeline : pipelines) EXPECT_TRUE(pipeline->IsAt(*position));
  return rows;
}

TEST(StreamedRowsTest, WithoutABufferItIsTheDataSetInOrder) {
  const CountingDataSet data_set(kRows);
  for (const int64_t worker : {0, 1}) {
    InputPipeline::Options options = Options(worker, 2, 5);
    options.batches_per_step = 2;
    options.shuffle_buffer = 0;
    options.shuffle = false;
    EXPECT_EQ(Read(*Make(Stream(), options), 12),
              Read(*Make(&data_set, options), 12));
  }
}

TEST(StreamedRowsTest, NothingIsLeftOutAndNothingRepeatedOverRestarts) {
  // Steps of 9, 8, 5 and 21 rows, which divide no pass; in all, three passes.
  DataPosition position;
  std::vector<int32_t> rows;
  const auto add = [&](const std::vector<int32_t>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  add(ReadTogether(3, 3, 9, &position));
  EXPECT_EQ(position.kind(), "stream");
  EXPECT_EQ(position.epoch(), 0);
  EXPECT_EQ(position.rows(), 81);
  add(ReadTogether(2, 4, 7, &position));
  EXPECT_EQ(position.epoch(), 1);
  EXPECT_EQ(position.rows(), 37);
  add(ReadTogether(1, 5, 14, &position));
  add(ReadTogether(3, 7, 4, &position));
  ASSERT_GE(rows.size(), 2 * kRows);
  for (int pass = 0; pass < 2; ++pass) {
    const std::set<int32_t> distinct(rows.begin() + pass * kRows,
                                     rows.begin() + (pass + 1) * kRows);
    EXPECT_EQ(distinct.size(), kRows) << pass;
  }
  // Who restarts nothing sees the same.
  DataPosition beginning;
  EXPECT_EQ(ReadTogether(1, 5, 50, &beginning),
            std::vector<int32_t>(rows.begin(), rows.begin() + 250));
}

TEST(StreamedRowsTest, RowsDoNotDependOnThreadsOrPrefetch) {
  const std::vector<int32_t> plain =
      Read(*Make(Stream(), Options(1, 2, 8)), 30);
  for (const int threads : {2, 5}) {
    for (const int64_t prefetch : {0, 3}) {
      InputPipeline::Options options = Options(1, 2, 8);
      options.threads = threads;
      options.prefetch = prefetch;
      EXPECT_EQ(Read(*Make(Stream(), options), 30), plain);
    }
  }
}

TEST(StreamedRowsTest, AStepHasANumberOfItsOwn) {
  const auto pipeline = Make(Stream(10), Options(0, 1, 4));
  std::set<uint64_t> numbers;
  for (int step = 0; step < 20; ++step) {
    Read(*pipeline, 1);
    numbers.insert(pipeline->step_number());
  }
  EXPECT_EQ(numbers.size(), 20);
  EXPECT_EQ(pipeline->steps_per_epoch(), 0);
}

TEST(StreamedRowsTest, GoesOnWithTheNextPassWhereFilesHaveBecomeShorter) {
  InputPipeline::Options options = Options(0, 1, 5);
  options.shuffle_buffer = 0;
  options.start = MakeDataPosition({3, 90}, 5, RowOrder::kStream);
  const auto pipeline = Make(Stream(40), options);
  EXPECT_EQ(Read(*pipeline, 1), (std::vector<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pipeline->position().epoch(), 4);
  EXPECT_EQ(pipeline->position().rows(), 5);
}

TEST(StreamedRowsTest, APositionOfAnotherOrderIsRefused) {
  InputPipeline::Options options = Options(0, 1, 5);
  options.start = MakeDataPosition({0, 5}, 5);
  EXPECT_THAT(InputPipeline::Create(Stream(), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'rows'"), HasSubstr("input.stream"))));
}

TEST(StreamedRowsTest, ABadRowIsAnErrorOfWhoseRowItIs) {
  InputPipeline::Options options = Options(1, 2, 4);
  options.shuffle_buffer = 0;
  const auto theirs = Make(Stream(kRows, {3}), options);
  EXPECT_THAT(theirs->Next(), IsOk());
  options.worker_index = 0;
  const auto own = Make(Stream(kRows, {3}), options);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(own->Next(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("row 3 of 'FILE'")));
  }
}

TEST(StreamedRowsTest, AnotherRowTakesTheBadOnesPlace) {
  ReportedLines lines;
  BadRecords bad_records(lines.reporter());
  InputPipeline::Options options = Options(0, 2, 4);
  options.shuffle_buffer = 0;
  options.bad_records = &bad_records;
  // 3 is this worker's last row of the step, whose last is 7; 8 is bad, too.
  const auto pipeline = Make(Stream(kRows, {1, 3, 8}), options);
  EXPECT_EQ(Read(*pipeline, 2),
            (std::vector<int32_t>{0, 2, 2, 9, 9, 9, 10, 11}));
  EXPECT_EQ(bad_records.count(), 3);
  EXPECT_THAT(lines.lines(),
              ElementsAre("W skipped a bad record: row 1 of 'FILE' is bad",
                          "W skipped a bad record: row 3 of 'FILE' is bad",
                          "W skipped a bad record: row 8 of 'FILE' is bad"));
}

TEST(StreamedRowsTest, BadRowsAloneAreAnError) {
  BadRecords bad_records{Reporter()};
  InputPipeline::Options options = Options(0, 1, 2);
  options.bad_records = &bad_records;
  EXPECT_THAT(Make(Stream(2, {0, 1}), options)->Next(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows one after the other are bad")));
}

}  // namespace
}  // namespace muster
