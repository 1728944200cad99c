#include "worker/checkpoint/given_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/shape.h"
#include "worker/client/call_status.h"
#include "worker/training/placed_model.h"

namespace muster {
namespace {

// TableStreams of the values alone.
std::vector<std::string> StreamsOf(const TableDef& table) {
  SavedTable saved;
  *saved.mutable_definition() = table;
  return TableStreams(saved);
}

// Writes the first values of a rule's slots into rows.
void FillSlots(const UpdateRule& rule, RowBlock* rows) {
  for (size_t i = 0; i < rule.slots().size(); ++i) {
    const size_t stream = RowBlock::kValues + 1 + i;
    auto* const begin = reinterpret_cast<float*>(rows->stream_data(stream));
    std::fill_n(begin, rows->floats(stream).size(),
                rule.slots()[i].initial_value);
  }
}

}  // namespace

absl::StatusOr<GivenRows> GivenRows::Create(absl::Span<const TableDef> tables,
                                            const SafetensorsReader* reader) {
  GivenRows rows(tables, reader);
  for (size_t i = 0; i < tables.size(); ++i) {
    RETURN_IF_ERROR(rows.Find(static_cast<int>(i)));
    RETURN_IF_ERROR(rows.CheckValues(static_cast<int>(i)));
  }
  return rows;
}

absl::Status GivenRows::Find(int table) {
  const TableDef& def = tables_[table];
  const std::vector<std::string> streams = StreamsOf(def);
  const std::string& ids_name = streams[RowBlock::kIds];
  const std::string& values_name = streams[RowBlock::kValues];
  rows_.push_back(-1);
  if (reader_ == nullptr || !reader_->Find(ids_name).ok() ||
      !reader_->Find(values_name).ok()) {
    missing_.push_back(def.name());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const SafetensorsEntry* ids, reader_->Find(ids_name));
  ASSIGN_OR_RETURN(const SafetensorsEntry* values, reader_->Find(values_name));
  const bool fits = ids->dtype == INT64 && values->dtype == FLOAT32 &&
                    ids->shape.rank() == 1 &&
                    values->shape == Shape({ids->shape.dim(0), def.dim()});
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", def.name(), "' wants '", ids_name, "' of I64 [n] and '",
        values_name, "' of F32 [n, ", def.dim(), "], found ",
        ids->shape.ToString(), " of ", absl::CHexEscape(ids->format_dtype),
        " and ", values->shape.ToString(), " of ",
        absl::CHexEscape(values->format_dtype)));
  }
  rows_.back() = ids->shape.dim(0);
  tensors_.insert({ids_name, values_name});
  return absl::OkStatus();
}

absl::Status GivenRows::CheckValues(int table) const {
  const int64_t dim = tables_[table].dim();
  const std::string name = StreamsOf(tables_[table])[RowBlock::kValues];
  std::vector<float> values;
  return ForEachRun(std::max<int64_t>(rows_[table], 0), dim * 4,
                    [&](int64_t row, int64_t count) {
                      values.resize(static_cast<size_t>(count * dim));
                      RETURN_IF_ERROR(reader_->Read(
                          name, row * dim, count * dim, values.data()));
                      const int64_t bad = FirstNonFinite(values);
                      if (bad < 0) return absl::OkStatus();
                      return absl::InvalidArgumentError(absl::StrCat(
                          "tensor '", name, "': element ", row * dim + bad,
                          " is ", values[bad], ", wanted a finite number"));
                    });
}

absl::Status GivenRows::LoadTable(int table, const LoadTableRows& load) const {
  const TableDef& def = tables_[table];
  const std::vector<std::string> streams = StreamsOf(def);
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule,
                   CreateUpdateRule(def.optimizer()));
  RowBlock rows(def.dim(), rule->slots().size());
  return ForEachRun(
      std::max<int64_t>(rows_[table], 0), rows.row_bytes(),
      [&](int64_t row, int64_t count) {
        rows.Resize(count);
        RETURN_IF_ERROR(
            OfFile(reader_->Read(streams[RowBlock::kIds], row, count,
                                 rows.stream_data(RowBlock::kIds))));
        std::fill_n(rows.stream_data(RowBlock::kUpdates),
                    rows.stream_bytes(RowBlock::kUpdates).size(), '\0');
        RETURN_IF_ERROR(OfFile(reader_->Read(
            streams[RowBlock::kValues], row * def.dim(), count * def.dim(),
            rows.stream_data(RowBlock::kValues))));
        FillSlots(*rule, &rows);
        return load(table, rows);
      });
}

absl::Status GivenRows::Load(const LoadTableRows& load) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    RETURN_IF_ERROR(LoadTable(static_cast<int>(i), load));
  }
  return absl::OkStatus();
}

}  // namespace muster
