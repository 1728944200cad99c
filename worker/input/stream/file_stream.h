#ifndef WORKER_INPUT_STREAM_FILE_STREAM_H_
#define WORKER_INPUT_STREAM_FILE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/row_mapper.h"
#include "worker/input/stream/example_stream.h"
#include "worker/input/stream/stream_format.h"

namespace muster {

// The records of files, one file after the other, and input.map.
class FileStream : public ExampleStream {
 public:
  struct Options {
    // At least one.
    std::vector<std::string> paths;
    // As the model reads an example.
    Shape example_shape;
    int64_t num_targets = 0;
    // The classes of rows: they are in [0, num_classes).
    int64_t num_classes = 0;
  };

  // A null `mapper` maps nothing.
  FileStream(Options options, std::unique_ptr<StreamFormat> format,
             std::unique_ptr<RowMapper> mapper)
      : options_(std::move(options)),
        format_(std::move(format)),
        mapper_(std::move(mapper)) {}

  const Shape& example_shape() const override { return options_.example_shape; }
  int64_t num_targets() const override { return options_.num_targets; }
  std::vector<std::string> Files() const override { return options_.paths; }

  absl::Status Begin() override;
  absl::StatusOr<bool> Next(StreamRecord* record) override;
  absl::Status Decode(const StreamRecord& record, int64_t epoch,
                      const ExampleMemory& into) const override;

 private:
  absl::Status DecodeStored(const StreamRecord& record,
                            const ExampleMemory& into) const;

  const Options options_;
  const std::unique_ptr<StreamFormat> format_;
  const std::unique_ptr<RowMapper> mapper_;

  // The file that is read, and the record that comes next.
  size_t file_ = 0;
  int64_t row_ = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_STREAM_FILE_STREAM_H_
