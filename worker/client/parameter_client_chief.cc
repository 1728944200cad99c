// What only the chief asks of the shards: loading a model and snapshots.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/cord_bytes.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "worker/client/parameter_client.h"
#include "worker/client/pinned_cord.h"

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
  // The index of the range that it is of.
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

// Cuts one range into runs of at most kMaxPartBytes.
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
  for (int64_t begin = 0; begin < length;) {
    const int64_t count =
        std::min(length - begin, kMaxPartBytes / element_bytes);
    (*runs)[model.placement[tensor]].push_back({tensor, offset + begin, count,
                                                begin * element_bytes,
                                                count * element_bytes, range});
    begin += count;
  }
  return absl::OkStatus();
}

void FillSlice(const ClientModel& model, const Run& run, TensorSlice* slice) {
  model.FillSlice({run.tensor, run.offset, run.length}, slice);
}

}  // namespace

template <typename Reply>
absl::StatusOr<std::vector<Reply>> ParameterClient::CallAll(
    const std::vector<int64_t>& bytes,
    const std::function<void(int, absl::Time, ReplyCallback<Reply>)>& call) {
  // Shared with callbacks that may come after a failed transfer's end. Each
  // element is written by the one callback that is answered OK.
  auto replies = std::make_shared<std::vector<Reply>>(num_shards());
  std::vector<std::vector<int64_t>> parts;
  for (const int64_t of_shard : bytes) parts.push_back({of_shard});
  RETURN_IF_ERROR(RunTransfer(
      parts,
      [&call, replies](Transfer* transfer, const TransferWindow::Send& send) {
        call(send.shard, send.deadline,
             [replies, send, shared = transfer->shared_from_this()](
                 absl::StatusOr<Reply> reply) {
               const absl::Status status = reply.status();
               if (reply.ok()) (*replies)[send.shard] = *std::move(reply);
               shared->Answer(send, status);
             });
      }));
  return std::move(*replies);
}

absl::StatusOr<std::vector<std::string>> ParameterClient::Define(
    const ModelDefinition& definition) {
  const std::shared_ptr<const ClientModel> model = this->model();
  std::vector<DefineRequest> requests(num_shards());
  for (int shard = 0; shard < num_shards(); ++shard) {
    DefineRequest& request = requests[shard];
    *request.mutable_sender() = model->sender;
    request.set_ps_incarnation(model->fences[shard].ps_incarnation());
    request.set_model_epoch(model->fences[shard].model_epoch());
    request.set_fingerprint(definition.fingerprint);
    *request.mutable_optimizer() = definition.optimizer;
    *request.mutable_replication() = definition.replication;
    request.set_allow_non_finite(definition.allow_non_finite);
  }
  for (size_t i = 0; i < model->tensors.size(); ++i) {
    *requests[model->placement[i]].add_tensors() = model->tensors[i];
  }
  ASSIGN_OR_RETURN(
      const std::vector<DefineReply> replies,
      // It takes a ps seconds to make room for gigabytes.
      CallAll<DefineReply>(
          ShardBytes(*model),
          [&](int shard, absl::Time deadline, ReplyCallback<DefineReply> done) {
            links_[shard]->Define(requests[shard], deadline, std::move(done));
          }));
  std::vector<std::string> slots(replies[0].slots().begin(),
                                 replies[0].slots().end());
  for (size_t shard = 1; shard < replies.size(); ++shard) {
    if (!std::equal(slots.begin(), slots.end(), replies[shard].slots().begin(),
                    replies[shard].slots().end())) {
      return absl::InternalError(absl::StrCat(
          "define: ", options_.ps_names[0], " and ", options_.ps_names[shard],
          " keep different slots for one optimizer; do both run "
          "the same version?"));
    }
  }
  return slots;
}

absl::Status ParameterClient::Load(absl::string_view slot,
                                   absl::Span<const LoadRange> ranges) {
  const std::shared_ptr<const ClientModel> model = this->model();
  Runs runs(num_shards());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LoadRange& range = ranges[i];
    if (range.tensor < 0 ||
        range.tensor >= static_cast<int>(model->tensors.size()) ||
        range.values.size_bytes % model->ElementBytes(range.tensor, slot) !=
            0) {
      return absl::InvalidArgumentError(
          absl::StrCat("load: range ", i, " of slot '", slot, "' (tensor ",
                       range.tensor, ") is not a whole number of elements"));
    }
    const int64_t length =
        range.values.size_bytes / model->ElementBytes(range.tensor, slot);
    RETURN_IF_ERROR(
        AppendRuns(*model, slot, range.tensor, range.offset, length, i, &runs));
  }
  return Annotate(
      RunTransfer(
          RunBytes(runs),
          [&](Transfer* transfer, const TransferWindow::Send& send) {
            const Run& run = runs[send.shard][send.part];
            const TensorView piece{
                ranges[run.range].values.data + run.first_byte, run.bytes};
            std::optional<absl::Cord> data = MakePinnedCord(transfer, {piece});
            if (!data.has_value()) return;
            LoadPart header;
            *header.mutable_sender() = model->sender;
            *header.mutable_fence() = model->fences[send.shard];
            header.set_slot(std::string(slot));
            FillSlice(*model, run, header.add_slices());
            links_[send.shard]->Load(
                {std::move(header), *std::move(data)}, send.deadline,
                [send, shared = transfer->shared_from_this()](
                    const absl::StatusOr<LoadReply>& reply) {
                  shared->Answer(send, reply.status());
                });
          }),
      "load");
}

absl::StatusOr<std::vector<ShardState>> ParameterClient::Seal() {
  const std::shared_ptr<const ClientModel> model = this->model();
  ASSIGN_OR_RETURN(
      const std::vector<SealReply> replies,
      CallAll<SealReply>(NoTensors(), [&](int shard, absl::Time deadline,
                                          ReplyCallback<SealReply> done) {
        SealRequest request;
        *request.mutable_sender() = model->sender;
        *request.mutable_fence() = model->fences[shard];
        links_[shard]->Seal(request, deadline, std::move(done));
      }));
  std::vector<ShardState> states;
  for (const SealReply& reply : replies) states.push_back(reply.state());
  return states;
}

absl::Status ParameterClient::LoadModel(const ModelDefinition& definition,
                                        absl::Span<const TensorView> values) {
  RETURN_IF_ERROR(Annotate(model()->CheckViews(values), "load"));
  RETURN_IF_ERROR(Define(definition).status());
  std::vector<LoadRange> ranges;
  for (size_t i = 0; i < values.size(); ++i) {
    ranges.push_back({static_cast<int>(i), 0, values[i]});
  }
  RETURN_IF_ERROR(Load("", ranges));
  return Seal().status();
}

absl::StatusOr<std::vector<BeginSnapshotReply>> ParameterClient::BeginSnapshot(
    const StepToken& token) {
  const std::shared_ptr<const ClientModel> model = this->model();
  return CallAll<BeginSnapshotReply>(
      NoTensors(), [&](int shard, absl::Time deadline,
                       ReplyCallback<BeginSnapshotReply> done) {
        BeginSnapshotRequest request;
        *request.mutable_sender() = model->sender;
        *request.mutable_fence() = model->fences[shard];
        if (token.round() != 0) *request.mutable_token() = token;
        links_[shard]->BeginSnapshot(request, deadline, std::move(done));
      });
}

absl::Status ParameterClient::ReadSnapshot(
    absl::Span<const BeginSnapshotReply> snapshots, int tensor,
    absl::string_view slot, int64_t offset, int64_t length, char* dst) {
  const std::shared_ptr<const ClientModel> model = this->model();
  Runs runs(num_shards());
  RETURN_IF_ERROR(Annotate(
      AppendRuns(*model, slot, tensor, offset, length, 0, &runs), "snapshot"));
  const auto answer = [dst](const absl::StatusOr<Frame<SnapshotPart>>& reply,
                            const Run& run, const TransferWindow::Send& send,
                            Transfer* transfer) {
    if (!transfer->Hold()) return;
    absl::Status status = reply.status();
    if (reply.ok() && static_cast<int64_t>(reply->data.size()) != run.bytes) {
      status = absl::InternalError(absl::StrCat(
          "asked for ", run.bytes, " bytes, got ", reply->data.size()));
    } else if (reply.ok()) {
      CopyCord(reply->data, dst + run.first_byte);
    }
    transfer->Answer(send, status);
    transfer->Release();
  };
  return Annotate(
      RunTransfer(RunBytes(runs),
                  [&](Transfer* transfer, const TransferWindow::Send& send) {
                    const Run run = runs[send.shard][send.part];
                    ReadSnapshotRequest request;
                    *request.mutable_sender() = model->sender;
                    *request.mutable_fence() = model->fences[send.shard];
                    request.set_snapshot(snapshots[send.shard].snapshot());
                    request.set_slot(std::string(slot));
                    FillSlice(*model, run, request.add_slices());
                    links_[send.shard]->ReadSnapshot(
                        request, send.deadline,
                        [answer, run, send,
                         shared = transfer->shared_from_this()](
                            const absl::StatusOr<Frame<SnapshotPart>>& reply) {
                          answer(reply, run, send, shared.get());
                        });
                  }),
      "snapshot");
}

absl::Status ParameterClient::EndSnapshot(
    absl::Span<const BeginSnapshotReply> snapshots) {
  const std::shared_ptr<const ClientModel> model = this->model();
  return CallAll<EndSnapshotReply>(
             NoTensors(),
             [&](int shard, absl::Time deadline,
                 ReplyCallback<EndSnapshotReply> done) {
               EndSnapshotRequest request;
               *request.mutable_sender() = model->sender;
               *request.mutable_fence() = model->fences[shard];
               request.set_snapshot(snapshots[shard].snapshot());
               links_[shard]->EndSnapshot(request, deadline, std::move(done));
             })
      .status();
}

// For PullVersions.
template absl::StatusOr<std::vector<Frame<PullReply>>>
ParameterClient::CallAll<Frame<PullReply>>(
    const std::vector<int64_t>& bytes,
    const std::function<void(int, absl::Time, ReplyCallback<Frame<PullReply>>)>&
        call);

}  // namespace muster
