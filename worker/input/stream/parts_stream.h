#ifndef WORKER_INPUT_STREAM_PARTS_STREAM_H_
#define WORKER_INPUT_STREAM_PARTS_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/data_set/row_mapper.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// The rows of the parts of the training half, one part after the other, and
// input.map.
class PartsStream : public ExampleStream {
 public:
  // Begins with the first row. `num_classes`: classes of rows, if they have
  // any, are below it. A null `mapper` maps nothing. Errors: those of
  // DataSetType's functions and of ExampleColumns.
  static absl::StatusOr<std::unique_ptr<PartsStream>> Open(
      const DataSetType& type, const DataSetRequest& request,
      int64_t num_classes, std::unique_ptr<RowMapper> mapper);

  const Shape& example_shape() const override {
    return mapper_ == nullptr ? request_.example_shape
                              : mapper_->example_shape();
  }
  int64_t num_targets() const override { return request_.labels.num_targets; }
  std::vector<std::string> Files() const override { return half_.files; }
  absl::Status Begin() override;
  absl::StatusOr<bool> Next(StreamRecord* record) override;
  absl::Status Decode(const StreamRecord& record, int64_t epoch,
                      const ExampleMemory& into) const override;

 private:
  PartsStream(const DataSetType& type, const DataSetRequest& request,
              HalfParts half, int64_t num_classes,
              std::unique_ptr<RowMapper> mapper)
      : type_(type),
        request_(request),
        half_(std::move(half)),
        num_classes_(num_classes),
        mapper_(std::move(mapper)) {}

  absl::Status OpenPart(size_t index);
  absl::Status DecodeStored(const StreamRecord& record,
                            const ExampleMemory& into) const;
  absl::Status ReadClass(const Row& row, int32_t* label) const;

  const DataSetType type_;
  const DataSetRequest request_;
  const HalfParts half_;
  const int64_t num_classes_;
  const std::unique_ptr<RowMapper> mapper_;
  // Those of the first part whose rows show any.
  std::optional<ExampleColumns> columns_;
  // The part that is read, and the row that comes next.
  std::unique_ptr<Part> part_;
  size_t index_ = 0;
  int64_t row_ = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_STREAM_PARTS_STREAM_H_
