#include "worker/client/chief_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/cord_bytes.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "worker/client/pinned_cord.h"
#include "worker/client/row_parts.h"

namespace muster {
namespace {

// A run of one tensor or slot, in one part.
struct Run {
  int tensor = 0;
  int64_t offset = 0;  // in the slot's elements
  int64_t length = 0;
  // The run's bytes in the caller's memory, from there.
  int64_t first_byte = 0;
  int64_t bytes = 0;
  // The index of its range.
  size_t range = 0;
};

// runs[ps task][part]
using Runs = std::vector<std::vector<Run>>;

std::vector<std::vector<int64_t>> RunBytes(const Runs& runs) {
  std::vector<std::vector<int64_t>> bytes(runs.size());
  for (size_t shard = 0; shard < runs.size(); ++shard) {
    for (const Run& run : runs[shard]) bytes[shard].push_back(run.bytes);
  }
  return bytes;
}

// The bytes of all tensors of each shard.
std::vector<int64_t> ShardBytes(const ClientModel& model) {
  std::vector<int64_t> bytes;
  for (const std::vector<PlannedPart>& parts : model.plan.parts) {
    bytes.push_back(0);
    for (const PlannedPart& part : parts) bytes.back() += part.bytes;
  }
  return bytes;
}

// Cuts one range into runs of at most kMaxPartBytes, each of one extent.
absl::Status AppendRuns(const ClientModel& model, absl::string_view slot,
                        int tensor, int64_t offset, int64_t length,
                        size_t range, Runs* runs) {
  if (tensor < 0 || tensor >= static_cast<int>(model.tensors.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor, " of ", model.tensors.size(), " does not exist"));
  }
  const int64_t elements = model.NumElements(tensor, slot);
  if (offset < 0 || length <= 0 || offset > elements - length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", model.tensors[tensor].name(), "' slot '", slot, "' has ", elements,
        " elements; asked for ", length, " from ", offset));
  }
  const int64_t element_bytes = model.ElementBytes(tensor, slot);
  for (const TensorExtent& extent : model.placement[tensor]) {
    const TensorExtent held = model.InUnits(extent, slot);
    const int64_t end = std::min(offset + length, held.end());
    for (int64_t begin = std::max(offset, held.begin); begin < end;) {
      const int64_t count =
          std::min(end - begin, kMaxPartBytes / element_bytes);
      (*runs)[held.ps].push_back({tensor, begin, count,
                                  (begin - offset) * element_bytes,
                                  count * element_bytes, range});
      begin += count;
    }
  }
  return absl::OkStatus();
}

void FillSlice(const ClientModel& model, const Run& run, TensorSlice* slice) {
  model.FillSlice({run.tensor, run.offset, run.length}, slice);
}

// The runs of all ranges. Errors: InvalidArgument.
absl::StatusOr<Runs> RunsOf(const ClientModel& model, absl::string_view slot,
                            absl::Span<const LoadRange> ranges) {
  Runs runs(model.fences.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LoadRange& range = ranges[i];
    if (range.tensor < 0 ||
        range.tensor >= static_cast<int>(model.tensors.size()) ||
        range.values.size_bytes % model.ElementBytes(range.tensor, slot) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("load: range ", i, " of slot '", slot, "' (tensor ",
                       range.tensor, ") is not a whole number of elements"));
    }
    const int64_t length =
        range.values.size_bytes / model.ElementBytes(range.tensor, slot);
    RETURN_IF_ERROR(
        AppendRuns(model, slot, range.tensor, range.offset, length, i, &runs));
  }
  return runs;
}

absl::Status CopyRun(const absl::StatusOr<Frame<SnapshotPart>>& reply,
                     const Run& run, char* dst) {
  RETURN_IF_ERROR(reply.status());
  if (static_cast<int64_t>(reply->data.size()) != run.bytes) {
    return absl::InternalError(absl::StrCat(
        "asked for ", run.bytes, " bytes, got ", reply->data.size()));
  }
  CopyCord(reply->data, dst + run.first_byte);
  return absl::OkStatus();
}

// By ps task.
std::vector<DefineRequest> MakeDefines(const ClientModel& model,
                                       const ModelDefinition& definition) {
  std::vector<DefineRequest> requests(model.fences.size());
  for (size_t shard = 0; shard < requests.size(); ++shard) {
    DefineRequest& request = requests[shard];
    *request.mutable_sender() = model.sender;
    request.set_ps_incarnation(model.fences[shard].ps_incarnation());
    request.set_model_epoch(model.fences[shard].model_epoch());
    request.set_fingerprint(definition.fingerprint);
    *request.mutable_optimizer() = definition.optimizer;
    *request.mutable_replication() = definition.replication;
    request.set_allow_non_finite(definition.allow_non_finite);
    for (const TableDef& table : model.tables) *request.add_tables() = table;
    request.set_ps_index(static_cast<int32_t>(shard));
    request.set_num_ps(static_cast<int32_t>(requests.size()));
    request.set_updates(definition.updates);
  }
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const int64_t elements = model.NumElements(static_cast<int>(i), "");
    for (const TensorExtent& extent : model.placement[i]) {
      TensorDef& tensor = *requests[extent.ps].add_tensors();
      tensor = model.tensors[i];
      if (extent.IsAllOf(elements)) continue;
      tensor.mutable_extent()->set_begin(extent.begin);
      tensor.mutable_extent()->set_length(extent.length);
    }
  }
  return requests;
}

DefinedSlots SlotsOf(const DefineReply& reply) {
  DefinedSlots slots;
  slots.of_tensors.assign(reply.slots().begin(), reply.slots().end());
  for (const TableState& table : reply.tables()) {
    slots.of_tables.emplace_back(table.slots().begin(), table.slots().end());
  }
  return slots;
}

bool SameSlots(const DefinedSlots& a, const DefinedSlots& b) {
  return a.of_tensors == b.of_tensors && a.of_tables == b.of_tables;
}

// Errors: InvalidArgument.
absl::StatusOr<RowParts> CutLoad(const ClientModel& model,
                                 const LoadedRows& rows) {
  RowParts::Options options;
  options.integers = 2;
  options.vectors = static_cast<int64_t>(rows.streams.size());
  ASSIGN_OR_RETURN(RowParts parts,
                   RowParts::Cut(model, {{rows.table, rows.ids}}, options));
  for (const absl::Span<const float> stream : rows.streams) {
    RETURN_IF_ERROR(model.CheckRows(rows.table, "values of a slot",
                                    rows.ids.size(), stream.size()));
  }
  if (rows.updates.size() == rows.ids.size()) return parts;
  return absl::InvalidArgumentError(
      absl::StrCat("rows of '", model.tables[rows.table].name(),
                   "': ", rows.ids.size(), " ids and ", rows.updates.size(),
                   " counts of updates; wanted one a row"));
}

std::vector<RowParts::Column> ColumnsOf(const ClientModel& model,
                                        const LoadedRows& rows) {
  std::vector<RowParts::Column> columns = {
      {rows.updates.data(), sizeof(int64_t)}};
  for (const absl::Span<const float> stream : rows.streams) {
    columns.push_back(
        {stream.data(),
         static_cast<size_t>(model.tables[rows.table].dim()) * sizeof(float)});
  }
  return columns;
}

}  // namespace

absl::StatusOr<DefinedSlots> ChiefClient::Define(
    const ModelDefinition& definition) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  const std::vector<DefineRequest> requests = MakeDefines(*model, definition);
  ASSIGN_OR_RETURN(
      const std::vector<DefineReply> replies,
      // It takes a ps seconds to make room for gigabytes.
      shards_.CallAll<DefineReply>(
          [&](int shard, absl::Time deadline, ReplyCallback<DefineReply> done) {
            shards_.link(shard).Call(kDefineCall, requests[shard], deadline,
                                     std::move(done));
          },
          ShardBytes(*model)));
  DefinedSlots slots = SlotsOf(replies[0]);
  for (size_t shard = 1; shard < replies.size(); ++shard) {
    if (SameSlots(slots, SlotsOf(replies[shard]))) continue;
    return absl::InternalError(
        absl::StrCat("define: ", shards_.name(0), " and ",
                     shards_.name(static_cast<int>(shard)),
                     " keep different slots for one optimizer; do both run "
                     "the same version?"));
  }
  return slots;
}

absl::Status ChiefClient::Load(absl::string_view slot,
                               absl::Span<const LoadRange> ranges) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  ASSIGN_OR_RETURN(const Runs runs, RunsOf(*model, slot, ranges));
  return Annotate(
      shards_.Run(
          RunBytes(runs),
          [&](Transfer* transfer, const TransferWindow::Send& send) {
            const Run& run = runs[send.shard][send.part];
            const TensorView piece{
                ranges[run.range].values.data + run.first_byte, run.bytes};
            std::optional<absl::Cord> data = MakePinnedCord(transfer, {piece});
            if (!data.has_value()) return;
            LoadPart header;
            model->FillHead(send.shard, &header);
            header.set_slot(std::string(slot));
            FillSlice(*model, run, header.add_slices());
            shards_.link(send.shard)
                .Load({std::move(header), *std::move(data)}, send.deadline,
                      [send, shared = transfer->shared_from_this()](
                          const absl::StatusOr<LoadReply>& reply) {
                        shared->Answer(send, reply.status());
                      });
          }),
      "load");
}

absl::Status ChiefClient::LoadRows(const LoadedRows& rows) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  absl::StatusOr<RowParts> cut = CutLoad(*model, rows);
  RETURN_IF_ERROR(Annotate(cut.status(), "load"));
  const RowParts& parts = *cut;
  const std::vector<std::vector<RowParts::Column>> columns = {
      ColumnsOf(*model, rows)};
  return Annotate(
      shards_.Run(parts.PartBytes(),
                  [&](Transfer* transfer, const TransferWindow::Send& send) {
                    const RowParts::Part& part =
                        parts.of(send.shard)[send.part];
                    LoadPart header;
                    model->FillHead(send.shard, &header);
                    RowRun& run = *header.mutable_rows();
                    run.set_table(model->tables[rows.table].name());
                    run.set_count(part.runs.front().count);
                    shards_.link(send.shard)
                        .Load({std::move(header), parts.DataOf(part, columns)},
                              send.deadline,
                              [send, shared = transfer->shared_from_this()](
                                  const absl::StatusOr<LoadReply>& reply) {
                                shared->Answer(send, reply.status());
                              });
                  }),
      "load of rows");
}

absl::StatusOr<std::vector<ShardState>> ChiefClient::Seal() {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  ASSIGN_OR_RETURN(
      const std::vector<SealReply> replies,
      shards_.CallAll<SealReply>([&](int shard, absl::Time deadline,
                                     ReplyCallback<SealReply> done) {
        SealRequest request;
        model->FillHead(shard, &request);
        shards_.link(shard).Call(kSealCall, request, deadline, std::move(done));
      }));
  std::vector<ShardState> states;
  for (const SealReply& reply : replies) states.push_back(reply.state());
  return states;
}

absl::Status ChiefClient::LoadModel(const ModelDefinition& definition,
                                    absl::Span<const TensorView> values) {
  RETURN_IF_ERROR(Annotate(shards_.model()->CheckViews(values), "load"));
  RETURN_IF_ERROR(Define(definition).status());
  std::vector<LoadRange> ranges;
  for (size_t i = 0; i < values.size(); ++i) {
    ranges.push_back({static_cast<int>(i), 0, values[i]});
  }
  RETURN_IF_ERROR(Load("", ranges));
  return Seal().status();
}

absl::StatusOr<std::vector<BeginSnapshotReply>> ChiefClient::BeginSnapshot(
    const StepToken& token) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  return shards_.CallAll<BeginSnapshotReply>(
      [&](int shard, absl::Time deadline,
          ReplyCallback<BeginSnapshotReply> done) {
        BeginSnapshotRequest request;
        model->FillHead(shard, &request);
        if (token.round() != 0) *request.mutable_token() = token;
        shards_.link(shard).Call(kBeginSnapshotCall, request, deadline,
                                 std::move(done));
      });
}

absl::Status ChiefClient::ReadSnapshot(
    absl::Span<const BeginSnapshotReply> snapshots, int tensor,
    absl::string_view slot, int64_t offset, int64_t length, char* dst) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  Runs runs(shards_.size());
  RETURN_IF_ERROR(Annotate(
      AppendRuns(*model, slot, tensor, offset, length, 0, &runs), "snapshot"));
  return Annotate(
      shards_.Run(
          RunBytes(runs),
          [&](Transfer* transfer, const TransferWindow::Send& send) {
            const Run run = runs[send.shard][send.part];
            ReadSnapshotRequest request;
            model->FillHead(send.shard, &request);
            request.set_snapshot(snapshots[send.shard].snapshot());
            request.set_slot(std::string(slot));
            FillSlice(*model, run, request.add_slices());
            shards_.link(send.shard)
                .ReadSnapshot(
                    request, send.deadline,
                    [run, dst, send, shared = transfer->shared_from_this()](
                        const absl::StatusOr<Frame<SnapshotPart>>& reply) {
                      if (!shared->Hold()) return;
                      shared->Answer(send, CopyRun(reply, run, dst));
                      shared->Release();
                    });
          }),
      "snapshot");
}

absl::StatusOr<Frame<SnapshotPart>> ChiefClient::ReadRows(
    absl::Span<const BeginSnapshotReply> snapshots, int ps_task,
    absl::string_view table, const RowCursor& cursor) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  ReadSnapshotRequest request;
  model->FillHead(ps_task, &request);
  request.set_snapshot(snapshots[ps_task].snapshot());
  request.set_table(std::string(table));
  *request.mutable_cursor() = cursor;
  std::vector<std::vector<int64_t>> parts(shards_.size());
  parts[ps_task] = {kMaxPartBytes};
  Frame<SnapshotPart> part;
  RETURN_IF_ERROR(Annotate(
      shards_.Run(parts,
                  [&](Transfer* transfer, const TransferWindow::Send& send) {
                    shards_.link(ps_task).ReadSnapshot(
                        request, send.deadline,
                        [&part, send, shared = transfer->shared_from_this()](
                            absl::StatusOr<Frame<SnapshotPart>> reply) {
                          if (!shared->Hold()) return;
                          if (reply.ok()) {
                            part.header = std::move(reply->header);
                            // The link's memory ends with this call.
                            part.data = absl::Cord(std::string(reply->data));
                          }
                          shared->Answer(send, reply.status());
                          shared->Release();
                        });
                  }),
      absl::StrCat("snapshot of '", table, "'")));
  return part;
}

absl::Status ChiefClient::EndSnapshot(
    absl::Span<const BeginSnapshotReply> snapshots) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  return shards_
      .CallAll<EndSnapshotReply>([&](int shard, absl::Time deadline,
                                     ReplyCallback<EndSnapshotReply> done) {
        EndSnapshotRequest request;
        model->FillHead(shard, &request);
        request.set_snapshot(snapshots[shard].snapshot());
        shards_.link(shard).Call(kEndSnapshotCall, request, deadline,
                                 std::move(done));
      })
      .status();
}

}  // namespace muster
