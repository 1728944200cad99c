#include "ps_server/shard/row_tables.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cord_bytes.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/config/attributes.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/protocol.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/caller/count_range.h"

namespace muster {
namespace {

constexpr int64_t kMaxDim = 65536;
constexpr absl::string_view kWeightDecay = "weight_decay";

absl::Status CheckRule(const OptimizerSpec& spec) {
  RETURN_IF_ERROR(CreateUpdateRule(spec).status());
  ASSIGN_OR_RETURN(const absl::Span<const AttrDef> defs,
                   UpdateRuleAttributes(spec.name()));
  ASSIGN_OR_RETURN(const Attributes attributes,
                   Attributes::Create(defs, spec.attr()));
  for (const AttrDef& def : defs) {
    if (def.name != kWeightDecay || attributes.Float(kWeightDecay) == 0) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer '", spec.name(), "' has weight_decay ",
        attributes.Float(kWeightDecay),
        ", which a row would only see when it is pushed; use a rule without "
        "one, or weight_decay 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckTable(const TableDef& def) {
  if (def.dim() < 1 || def.dim() > kMaxDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of ", def.dim(), " values; wanted 1 to ", kMaxDim));
  }
  if (!InitialRows_IsValid(def.initial()) || !std::isfinite(def.scale()) ||
      def.scale() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("first values ", def.initial(), " of scale ", def.scale(),
                     "; wanted UNIFORM or ZEROS, and a finite scale >= 0"));
  }
  if (def.max_rows() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_rows ", def.max_rows(), "; wanted 1 or more, or 0 for no limit"));
  }
  return CheckRule(def.optimizer());
}

absl::Status CheckPlace(const DefineRequest& request, int32_t ps_index) {
  if (request.num_ps() > kLogicalShards || request.ps_index() != ps_index ||
      ps_index >= request.num_ps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tables are for ps task ", request.ps_index(), " of ",
                     request.num_ps(), "; this one is ", ps_index,
                     ", of at most ", kLogicalShards));
  }
  if (!IsCount(request.updates())) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.updates(),
                     " updates of the model before; wanted 0 to ", kMaxCount));
  }
  if (request.replication().async().pull() == IN_PLACE) {
    return absl::InvalidArgumentError(
        "a model with tables cannot be read in place; leave "
        "replication.async.pull: IN_PLACE out");
  }
  return absl::OkStatus();
}

int EndLogicalShard(const DefineRequest& request) {
  return FirstLogicalShard(request.ps_index() + 1, request.num_ps());
}

int NumLogicalShards(const DefineRequest& request) {
  return EndLogicalShard(request) -
         FirstLogicalShard(request.ps_index(), request.num_ps());
}

int64_t LoadedBytes(const RowTable& table) {
  return int64_t{sizeof(int64_t)} +
         table.floats_per_row() * int64_t{sizeof(float)};
}

// What a load's rows have behind their ids.
struct LoadedRows {
  std::vector<int64_t> updates;
  std::vector<float> streams;  // [stream, n, dim]
};

absl::StatusOr<LoadedRows> ReadLoad(absl::string_view what,
                                    const absl::Cord& data, int64_t count,
                                    const RowTable& table,
                                    bool allow_non_finite) {
  LoadedRows rows;
  rows.updates.resize(count);
  rows.streams.resize(count * table.floats_per_row());
  const size_t ids_bytes = count * sizeof(int64_t);
  absl::Cord::CharIterator position = data.char_begin();
  absl::Cord::Advance(&position, ids_bytes);
  CopyNext(&position, ids_bytes, reinterpret_cast<char*>(rows.updates.data()));
  CopyNext(&position, rows.streams.size() * sizeof(float),
           reinterpret_cast<char*>(rows.streams.data()));
  if (!std::all_of(rows.updates.begin(), rows.updates.end(), IsCount)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": '", table.def().name(),
                     "' has a count of updates that is out of range"));
  }
  if (!allow_non_finite && FirstNonFinite(rows.streams) >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": '", table.def().name(), "' has NaN or infinity"));
  }
  return rows;
}

TableState StateOf(const RowTable& table) {
  TableState state;
  *state.mutable_definition() = table.def();
  for (const SlotDef& slot : table.slots()) state.add_slots(slot.name);
  state.set_rows(table.rows());
  state.set_bytes(table.bytes());
  state.set_created_rows(table.created_rows());
  state.set_evicted_rows(table.evicted_rows());
  state.set_first_logical_shard(table.first_logical_shard());
  state.set_end_logical_shard(table.end_logical_shard());
  return state;
}

// Writes rows as LoadPart has them.
void WriteRows(const RowTable::SnapshotRows& rows, const RowTable& table,
               char* dst) {
  const auto write = [&dst](const void* from, size_t size) {
    std::memcpy(dst, from, size);
    dst += size;
  };
  if (rows.ids.empty()) return;
  write(rows.ids.data(), rows.ids.size() * sizeof(int64_t));
  write(rows.updates.data(), rows.updates.size() * sizeof(int64_t));
  for (int64_t at = 0; at < table.floats_per_row(); at += table.dim()) {
    for (const float* const values : rows.values) {
      write(values + at, table.dim() * sizeof(float));
    }
  }
}

}  // namespace

absl::StatusOr<int64_t> CheckTables(const DefineRequest& request,
                                    int32_t ps_index, int64_t max_bytes) {
  if (request.tables().empty()) return max_bytes;
  RETURN_IF_ERROR(CheckPlace(request, ps_index));
  std::set<std::string> names;
  for (const TensorDef& tensor : request.tensors()) names.insert(tensor.name());
  for (const TableDef& def : request.tables()) {
    RETURN_IF_ERROR(CheckParameterName(def.name()));
    const std::string what = absl::StrCat("define table '", def.name(), "'");
    if (!names.insert(def.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": a tensor or another table has this name; choose another"));
    }
    RETURN_IF_ERROR(Annotate(CheckTable(def), what));
  }
  const int64_t bytes =
      RowTable::EmptyBytes(NumLogicalShards(request)) * request.tables().size();
  if (bytes <= max_bytes) return max_bytes - bytes;
  return absl::InvalidArgumentError(absl::StrCat(
      request.tables().size(), " tables take ", bytes, " bytes without a row, ",
      max_bytes, " are left of what the shard may have; use more ps tasks"));
}

absl::StatusOr<RowTables> RowTables::Create(const DefineRequest& request) {
  RowTables tables;
  for (const TableDef& def : request.tables()) {
    ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule,
                     CreateUpdateRule(def.optimizer()));
    tables.tables_.emplace_back(
        def, std::move(rule),
        FirstLogicalShard(request.ps_index(), request.num_ps()),
        EndLogicalShard(request));
  }
  tables.EndUpdate();
  return tables;
}

int64_t RowTables::BytesWith(absl::Span<const int64_t> more) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    bytes += tables_[i].BytesWith(more[i]);
  }
  return bytes;
}

int64_t RowTables::bytes() const {
  return BytesWith(std::vector<int64_t>(tables_.size(), 0));
}

// ---- Loads ------------------------------------------------------------------

absl::Status RowTables::Load(absl::string_view what,
                             const Frame<LoadPart>& request,
                             bool allow_non_finite, int64_t max_bytes,
                             int64_t updates) {
  const LoadPart& header = request.header;
  if (!header.slot().empty() || !header.slices().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": rows and slices; send one of them in a message"));
  }
  RowRuns runs;
  *runs.Add() = header.rows();
  ASSIGN_OR_RETURN(const std::vector<RowIds> ids,
                   CheckRowIds(what, runs, request.data, tables_, LoadedBytes));
  RowTable& table = tables_[ids[0].table];
  const auto count = static_cast<int64_t>(ids[0].ids.size());
  ASSIGN_OR_RETURN(const LoadedRows rows, ReadLoad(what, request.data, count,
                                                   table, allow_non_finite));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> places,
                   CheckDistinct(what, ids[0].ids, table));
  CheckedRows sorted = {ids[0].table, table.dim(), table.hash(), {}, {}};
  for (const uint32_t place : places) sorted.ids.push_back(ids[0].ids[place]);
  ShardSnapshot none;
  RETURN_IF_ERROR(Reserve(what, {&sorted, 1}, max_bytes, &none));
  std::vector<const float*> streams(1 + table.slots().size());
  for (int64_t i = 0; i < count; ++i) {
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      streams[stream] =
          rows.streams.data() +
          (static_cast<int64_t>(stream) * count + i) * table.dim();
    }
    table.Load(ids[0].ids[i], rows.updates[i], updates, streams, &none);
  }
  EndUpdate();
  return absl::OkStatus();
}

// ---- Pulls ------------------------------------------------------------------

absl::StatusOr<RowTables::Wanted> RowTables::CheckPull(
    absl::string_view what, const Frame<PullRowsRequest>& request) const {
  Wanted wanted;
  ASSIGN_OR_RETURN(wanted.rows,
                   CheckRowIds(what, request.header.rows(), request.data,
                               tables_, [](const RowTable&) { return 0; }));
  for (const RowIds& run : wanted.rows) {
    wanted.bytes += static_cast<int64_t>(run.ids.size() * sizeof(float)) *
                    tables_[run.table].dim();
  }
  if (wanted.bytes <= kMaxPartBytes) return wanted;
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": the rows' values take ", wanted.bytes,
                   " bytes, a message has at most ", kMaxPartBytes,
                   "; ask for fewer rows at once"));
}

void RowTables::Read(const Wanted& wanted, char* values) const {
  auto* next = reinterpret_cast<float*>(values);
  for (const RowIds& run : wanted.rows) {
    tables_[run.table].Read(run.ids, next);
    next += static_cast<int64_t>(run.ids.size()) * tables_[run.table].dim();
  }
}

// ---- Pushes -----------------------------------------------------------------

absl::StatusOr<std::vector<CheckedRows>> RowTables::CheckPart(
    absl::string_view what, const Frame<PushPart>& request,
    bool allow_non_finite) const {
  const PushPart& header = request.header;
  if (!header.is_rows() || !header.slices().empty() ||
      !header.codec().empty() || header.wants_values()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     ": a part of rows has is_rows, no slices and no codec, "
                     "and wants no values"));
  }
  return CheckRowGradients(what, header.rows(), request.data, tables_,
                           allow_non_finite);
}

absl::Status RowTables::Reserve(absl::string_view what,
                                absl::Span<const CheckedRows> rows,
                                int64_t max_bytes, ShardSnapshot* snapshot) {
  std::vector<int64_t> more = reserved_;
  for (const CheckedRows& run : rows) {
    const RowTable& table = tables_[run.table];
    const int64_t created = table.CountNew(run.ids);
    more[run.table] += created;
    if (created == 0 || BytesWith(more) <= max_bytes) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ": ", created, " new rows of table '", table.def().name(),
        "', which has ", table.rows(), " here of ", table.bytes(),
        " bytes: all tables would take ", BytesWith(more), " of the ",
        max_bytes, " bytes that are for rows; nothing was applied: set ",
        "max_rows of the table, use more ps tasks, or give the ps, or the ",
        "namespace (--max_namespace_bytes), more memory"));
  }
  for (const CheckedRows& run : rows) {
    RowTable& table = tables_[run.table];
    if (table.Reserve(more[run.table])) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ": the machine has no memory for more rows of table '",
        table.def().name(), "', which has ", table.rows(),
        "; nothing was applied: use more ps tasks, or set max_rows"));
  }
  // Training goes before a save.
  snapshot->Take(BytesWith(more) - BytesWith(reserved_));
  reserved_ = std::move(more);
  return absl::OkStatus();
}

void RowTables::Update(const CheckedRows& rows,
                       const RowTable::ModelUpdate& update,
                       ShardSnapshot* snapshot) {
  tables_[rows.table].Update(rows.ids, rows.gradients.data(), update, snapshot);
}

// ---- Snapshots --------------------------------------------------------------

void RowTables::BeginSnapshot(const ShardSnapshot& snapshot) {
  for (RowTable& table : tables_) table.BeginSnapshot(snapshot);
}

void RowTables::ClearSnapshot() {
  for (RowTable& table : tables_) table.ClearSnapshot();
}

absl::StatusOr<Frame<SnapshotPart>> RowTables::ReadSnapshot(
    absl::string_view what, const ReadSnapshotRequest& request,
    ShardSnapshot* snapshot, BufferPool* replies) {
  const absl::StatusOr<int> index = FindTable(request.table(), tables_);
  RETURN_IF_ERROR(Annotate(index.status(), what));
  RowTable& table = tables_[*index];
  RowCursor cursor = request.cursor();
  if (!request.has_cursor()) {
    cursor.set_logical_shard(table.first_logical_shard());
  }
  if (!request.slot().empty() || !request.slices().empty() ||
      cursor.logical_shard() < table.passed_logical_shards() ||
      cursor.logical_shard() >= table.end_logical_shard()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": rows of '", request.table(), "' from logical shard ",
        cursor.logical_shard(), "; wanted no slot or slices, and one from ",
        table.passed_logical_shards(), ", which is read now, to ",
        table.end_logical_shard() - 1));
  }
  const int64_t row_bytes = int64_t{sizeof(int64_t)} + LoadedBytes(table);
  const RowTable::SnapshotRows rows = table.ReadSnapshot(
      cursor, std::max<int64_t>(1, kMaxPartBytes / row_bytes), snapshot);
  Frame<SnapshotPart> reply;
  reply.header.mutable_rows()->set_table(request.table());
  reply.header.mutable_rows()->set_count(rows.ids.size());
  if (rows.next.has_value()) *reply.header.mutable_next() = *rows.next;
  reply.data = replies->Make(rows.ids.size() * row_bytes,
                             [&](char* data) { WriteRows(rows, table, data); });
  return reply;
}

void RowTables::AddStates(
    google::protobuf::RepeatedPtrField<TableState>* states) const {
  for (const RowTable& table : tables_) *states->Add() = StateOf(table);
}

}  // namespace muster
