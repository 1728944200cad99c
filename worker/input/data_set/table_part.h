#ifndef WORKER_INPUT_DATA_SET_TABLE_PART_H_
#define WORKER_INPUT_DATA_SET_TABLE_PART_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/data_set/part.h"
#include "worker/input/file/bad_rows.h"

namespace muster {

// The rows of a part that is read in order, in memory, so that they can be read
// at random: examples and targets as float32, 4 bytes a value, and each text of
// a class once.
class TablePart : public Part {
 public:
  // Reads all rows of `part`, whose columns are `columns`. Errors: those of its
  // rows, unless bad ones are skipped, which Read returns then; InvalidArgument
  // (too little memory).
  static absl::StatusOr<std::unique_ptr<Part>> Read(
      const DataSetType& type, const DataSetRequest& request,
      const ExampleColumns& columns, Part& part);

  std::optional<int64_t> num_rows() const override { return places_.size(); }
  absl::Status Read(int64_t row, absl::Span<const size_t> wanted,
                    Row* into) const override;
  std::string Place(int64_t row) const override;

 private:
  TablePart(const DataSetType& type, const DataSetRequest& request,
            const Part& part, std::vector<Column> columns, bool has_weights);

  absl::Status Add(const DataSetType& type, const ExampleColumns& columns,
                   const Record& record);
  absl::Status Parse(const DataSetType& type, const ExampleColumns& columns,
                     const Record& record);

  // Errors: InvalidArgument (too little memory).
  absl::Status CheckRoom(size_t row) const;
  // Takes `floats_` as the last row.
  void Append();

  // A row's values and targets, and what they and its weight are.
  const size_t num_values_;
  const size_t num_targets_;
  const bool has_weights_;
  const size_t num_floats_;
  const bool has_texts_;
  const bool skips_bad_;
  const std::string place_name_;
  // As large as a huge page, if no row is larger.
  size_t BlockBytes() const {
    return std::max(AlignedBuffer::kHugePage,
                    block_rows_ * num_floats_ * sizeof(float));
  }

  // The rows of a block.
  const size_t block_rows_;
  // [block_rows_, num_floats_] each: rows at random are waited for, and in
  // small pages those of the page table are, too.
  std::vector<AlignedBuffer> blocks_;
  // The rows after them, less than a block.
  std::vector<float> tail_;
  // By row, the place of its text in `distinct_texts_`; none without texts.
  std::vector<int32_t> texts_;
  std::vector<std::string> distinct_texts_;
  absl::flat_hash_map<std::string, int32_t> places_of_texts_;
  // By row, modulo 2^32: for messages.
  std::vector<uint32_t> places_;
  BadRows bad_rows_;
  // Memory of the row that is read.
  Row row_;
  std::vector<float> floats_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_TABLE_PART_H_
