#include "worker/input/data_set/table_part.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/open_part.h"

namespace muster {
namespace {

constexpr size_t kBlockFloats = AlignedBuffer::kHugePage / sizeof(float);

// One column of values, the labels, and the weight of a row, of a table.
std::vector<Column> TableColumns(const DataSetRequest& request,
                                 const ExampleColumns& columns) {
  Column values = {columns.columns()[columns.values()[0]].name};
  values.shape->clear();
  for (int i = 0; i < request.example_shape.rank(); ++i) {
    values.shape->push_back(request.example_shape.dim(i));
  }
  std::vector<Column> table = {std::move(values)};
  for (const size_t label : columns.labels()) {
    table.push_back({columns.columns()[label].name});
    if (request.labels.kind == LabelKind::kClass) {
      table.back().kind = ColumnKind::kText;
    }
  }
  if (columns.weight().has_value()) {
    table.push_back({columns.columns()[*columns.weight()].name});
  }
  return table;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Part>> TablePart::Read(
    const DataSetType& type, const DataSetRequest& request,
    const ExampleColumns& columns, Part& part) {
  auto table = absl::WrapUnique(new TablePart(type, request, part,
                                              TableColumns(request, columns),
                                              columns.weight().has_value()));
  Record record;
  while (true) {
    record.bad = absl::OkStatus();
    ASSIGN_OR_RETURN(const bool more, part.Next(&record));
    if (!more) break;
    RETURN_IF_ERROR(table->Add(type, columns, record));
    request.progress->AddRow();
  }
  table->tail_.shrink_to_fit();
  return table;
}

TablePart::TablePart(const DataSetType& type, const DataSetRequest& request,
                     const Part& part, std::vector<Column> columns,
                     bool has_weights)
    : Part(part.files(), std::move(columns)),
      num_values_(request.example_shape.num_elements()),
      num_targets_(request.labels.num_targets),
      has_weights_(has_weights),
      num_floats_(num_values_ + num_targets_ + (has_weights ? 1 : 0)),
      has_texts_(request.labels.kind == LabelKind::kClass),
      skips_bad_(request.spec.on_bad_record() == SKIP),
      place_name_(type.place_name),
      block_rows_(std::max<size_t>(1, kBlockFloats / num_floats_)),
      floats_(num_floats_) {}

absl::Status TablePart::Add(const DataSetType& type,
                            const ExampleColumns& columns,
                            const Record& record) {
  const auto row = static_cast<int64_t>(places_.size());
  RETURN_IF_ERROR(CheckRoom(row));
  places_.push_back(static_cast<uint32_t>(record.place));
  if (has_texts_) texts_.push_back(0);
  const absl::Status status = Parse(type, columns, record);
  if (!status.ok()) {
    if (!skips_bad_) return AtPlace(status, Place(row));
    bad_rows_.Add(row, status);
    absl::c_fill(floats_, 0.0f);
  }
  Append();
  return absl::OkStatus();
}

absl::Status TablePart::CheckRoom(size_t row) const {
  if (row % block_rows_ != 0) return absl::OkStatus();
  return CheckMemory(
      "the table",
      SaturatingProduct(static_cast<int64_t>(blocks_.size()) + 1, BlockBytes()),
      OwnMemoryLimit());
}

void TablePart::Append() {
  absl::c_copy(floats_, std::back_inserter(tail_));
  if (tail_.size() < block_rows_ * num_floats_) return;
  AlignedBuffer& block = blocks_.emplace_back(BlockBytes());
  std::memcpy(block.data(), tail_.data(), tail_.size() * sizeof(float));
  tail_.clear();
}

absl::Status TablePart::Parse(const DataSetType& type,
                              const ExampleColumns& columns,
                              const Record& record) {
  RETURN_IF_ERROR(record.bad);
  row_.cells.resize(columns.columns().size());
  RETURN_IF_ERROR(type.parse(columns.columns(), record, columns.all(), &row_));
  RETURN_IF_ERROR(columns.ReadValues(row_, floats_.data()));
  if (num_targets_ > 0) {
    RETURN_IF_ERROR(columns.ReadTargets(row_, floats_.data() + num_values_));
  }
  if (has_weights_) RETURN_IF_ERROR(columns.ReadWeight(row_, &floats_.back()));
  if (!has_texts_) return absl::OkStatus();
  std::string text;
  if (columns.has_texts()) {
    text = std::string(columns.ClassText(row_));
  } else {
    ASSIGN_OR_RETURN(const int32_t label, columns.ReadClass(row_, nullptr));
    text = absl::StrCat(label);
  }
  const auto added = places_of_texts_.try_emplace(
      text, static_cast<int32_t>(distinct_texts_.size()));
  if (added.second) distinct_texts_.push_back(std::move(text));
  texts_.back() = added.first->second;
  return absl::OkStatus();
}

absl::Status TablePart::Read(int64_t row, absl::Span<const size_t> /*wanted*/,
                             Row* into) const {
  RETURN_IF_ERROR(bad_rows_.Check(row));
  const size_t block = static_cast<size_t>(row) / block_rows_;
  const size_t place = static_cast<size_t>(row) % block_rows_;
  const float* const begin =
      block < blocks_.size() ? blocks_[block].as<float>() : tail_.data();
  const absl::Span<const float> floats(begin + place * num_floats_,
                                       num_floats_);
  into->cells[0] = floats.first(num_values_);
  if (has_weights_) into->cells.back() = floats.subspan(num_floats_ - 1, 1);
  if (has_texts_) {
    into->cells[1] = absl::string_view(distinct_texts_[texts_[row]]);
    return absl::OkStatus();
  }
  for (size_t i = 0; i < num_targets_; ++i) {
    into->cells[1 + i] = floats.subspan(num_values_ + i, 1);
  }
  return absl::OkStatus();
}

std::string TablePart::Place(int64_t row) const {
  return absl::StrCat(place_name_, " ", places_[row], " of '", files().back(),
                      "'");
}

}  // namespace muster
