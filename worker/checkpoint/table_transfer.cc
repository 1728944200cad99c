#include "worker/checkpoint/table_transfer.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/cord_bytes.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/row_hash.h"
#include "worker/client/call_status.h"
#include "worker/training/placed_model.h"

namespace muster {
namespace {

std::string ListOf(
    const google::protobuf::RepeatedPtrField<std::string>& slots) {
  return absl::StrCat("[", absl::CHexEscape(absl::StrJoin(slots, ", ")), "]");
}

// The rows of an answer.
absl::Status TakePart(const Frame<SnapshotPart>& part, absl::string_view table,
                      RowBlock* rows) {
  const int64_t count = part.header.rows().count();
  const auto bytes = static_cast<int64_t>(part.data.size());
  const bool fits = count >= 0 && bytes % rows->row_bytes() == 0 &&
                    bytes / rows->row_bytes() == count;
  if (!fits || (count > 0 && part.header.rows().table() != table)) {
    return absl::InternalError(
        absl::StrCat("asked for rows of table '", table, "' of ",
                     rows->row_bytes(), " bytes each, got ", count, " of '",
                     absl::CHexEscape(part.header.rows().table()), "' in ",
                     bytes, " bytes"));
  }
  rows->Resize(count);
  CopyCord(part.data, rows->data());
  return absl::OkStatus();
}

bool IsBehind(const RowCursor& next, const RowCursor& cursor) {
  if (next.logical_shard() != cursor.logical_shard()) {
    return next.logical_shard() > cursor.logical_shard();
  }
  return next.has_after_id() &&
         (!cursor.has_after_id() || next.after_id() > cursor.after_id());
}

// As CheckFinite of tensors: such a model could only fail once it is restored.
absl::Status CheckFiniteRows(absl::Span<const std::string> streams,
                             const RowBlock& rows) {
  for (size_t i = RowBlock::kValues; i < streams.size(); ++i) {
    const absl::Span<const float> values = rows.floats(i);
    const int64_t bad = FirstNonFinite(values);
    if (bad < 0) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "save '", streams[i], "': element ", bad % rows.dim(), " of the row ",
        rows.ids()[bad / rows.dim()], " is ", values[bad],
        ", wanted a finite number; earlier checkpoints are kept. Lower the "
        "learning rate, or set non_finite.allow to save it as it is"));
  }
  return absl::OkStatus();
}

// Writes the rows of one ps task. Returns how many.
absl::StatusOr<int64_t> SaveShard(const TableSave& save, int table, int ps_task,
                                  CheckpointWriter* writer) {
  const SavedTable& saved = save.tables[table];
  const std::string& name = saved.definition().name();
  const std::vector<std::string> streams = TableStreams(saved);
  RowBlock rows(saved.definition().dim(), saved.slots_size());
  RowCursor cursor;
  cursor.set_logical_shard(FirstLogicalShard(ps_task, save.num_ps));
  for (int64_t total = 0;;) {
    ASSIGN_OR_RETURN(const Frame<SnapshotPart> part,
                     save.read(ps_task, name, cursor));
    RETURN_IF_ERROR(TakePart(part, name, &rows));
    if (!save.allow_non_finite) {
      RETURN_IF_ERROR(CheckFiniteRows(streams, rows));
    }
    RETURN_IF_ERROR(OfFile(writer->AppendRows(table, rows)));
    total += rows.rows();
    if (!part.header.has_next()) return total;
    if (!IsBehind(part.header.next(), cursor)) {
      return absl::InternalError(
          absl::StrCat("the rows of table '", name, "' on ps task ", ps_task,
                       " go on where they were, and have no end"));
    }
    cursor = part.header.next();
  }
}

// The saved table of a name.
int FindSaved(const CheckpointManifest& manifest, const std::string& name) {
  int index = 0;
  while (manifest.tables(index).definition().name() != name) {
    ++index;  // CheckCompatible found every name.
  }
  return index;
}

}  // namespace

absl::StatusOr<std::vector<SavedTable>> TablesOf(
    absl::Span<const TableDef> tables,
    absl::Span<const BeginSnapshotReply> snapshots) {
  std::vector<SavedTable> saved(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    *saved[i].mutable_definition() = tables[i];
    int64_t rows = 0;
    for (const BeginSnapshotReply& snapshot : snapshots) {
      const auto held =
          absl::c_find_if(snapshot.tables(), [&](const TableState& state) {
            return state.definition().name() == tables[i].name();
          });
      const bool is_first = &snapshot == &snapshots.front();
      if (held == snapshot.tables().end() || held->rows() < 0 ||
          (!is_first && !absl::c_equal(held->slots(), saved[i].slots()))) {
        return absl::InternalError(absl::StrCat(
            "the snapshot of a ps task has no table '", tables[i].name(),
            "', or other slots of it than the first one; do all run the same "
            "version?"));
      }
      *saved[i].mutable_slots() = held->slots();
      rows += held->rows();
    }
    saved[i].set_rows(rows);
  }
  return saved;
}

absl::Status SaveTables(const TableSave& save, CheckpointWriter* writer) {
  for (size_t i = 0; i < save.tables.size(); ++i) {
    int64_t rows = 0;
    for (int ps = 0; ps < save.num_ps; ++ps) {
      ASSIGN_OR_RETURN(const int64_t more,
                       SaveShard(save, static_cast<int>(i), ps, writer));
      rows += more;
    }
    if (rows != save.tables[i].rows()) {
      return absl::InternalError(absl::StrCat(
          "the snapshots of table '", save.tables[i].definition().name(),
          "' have ", rows, " rows, and had ", save.tables[i].rows(),
          " when they began"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTableSlots(const CheckpointManifest& manifest,
                             absl::Span<const TableDef> tables) {
  for (const TableDef& table : tables) {
    const SavedTable& saved =
        manifest.tables(FindSaved(manifest, table.name()));
    ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule,
                     CreateUpdateRule(table.optimizer()));
    google::protobuf::RepeatedPtrField<std::string> slots;
    for (const SlotDef& slot : rule->slots()) *slots.Add() = slot.name;
    if (absl::c_equal(slots, saved.slots())) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint is of another model: table '", table.name(),
        "': rule '", table.optimizer().name(), "' has the slots ",
        ListOf(slots), ", the checkpoint ", ListOf(saved.slots())));
  }
  return absl::OkStatus();
}

absl::Status LoadTables(const CheckpointReader& reader,
                        absl::Span<const TableDef> tables,
                        const LoadTableRows& load) {
  for (size_t i = 0; i < tables.size(); ++i) {
    absl::Status loaded;
    const absl::Status read =
        reader.ForEachRowBlock(FindSaved(reader.manifest(), tables[i].name()),
                               kTransferBytes, [&](const RowBlock& rows) {
                                 loaded = load(static_cast<int>(i), rows);
                                 return loaded;
                               });
    RETURN_IF_ERROR(loaded);
    RETURN_IF_ERROR(OfFile(read));
  }
  return absl::OkStatus();
}

}  // namespace muster
