#ifndef TESTS_WORKER_INPUT_STREAM_COUNTING_STREAM_H_
#define TESTS_WORKER_INPUT_STREAM_COUNTING_STREAM_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// The rows of a CountingDataSet as a stream, some of them bad.
class CountingStream : public ExampleStream {
 public:
  explicit CountingStream(int64_t rows, std::set<int64_t> bad = {})
      : rows_(rows), bad_(std::move(bad)) {}

  const Shape& example_shape() const override { return shape_; }
  int64_t num_targets() const override { return 0; }
  std::vector<std::string> Files() const override { return {"FILE"}; }
  absl::Status Begin() override {
    next_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Next(StreamRecord* record) override {
    if (next_ == rows_) return false;
    record->row = next_++;
    record->bytes = absl::StrCat(record->row);
    return true;
  }
  absl::Status Decode(const StreamRecord& record, int64_t /*epoch*/,
                      const ExampleMemory& into) const override {
    if (bad_.count(record.row) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", record.row, " of 'FILE' is bad"));
    }
    into.values[0] = static_cast<float>(record.row);
    into.values[1] = static_cast<float>(record.row) + 0.5f;
    *into.label = static_cast<int32_t>(record.row);
    return absl::OkStatus();
  }

 private:
  const Shape shape_ = Shape({2});
  const int64_t rows_;
  const std::set<int64_t> bad_;
  int64_t next_ = 0;
};

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_STREAM_COUNTING_STREAM_H_
