#include "worker/client/push_state.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "worker/client/pinned_cord.h"

namespace muster {

PushState::PushState(Options options) : options_(std::move(options)) {
  for (const std::vector<PlannedPart>& parts : options_.model->plan.parts) {
    times_.emplace_back(parts.size());
  }
}

PushPart PushState::MakeHeader(const TransferWindow::Send& send) const {
  const ClientModel& model = *options_.model;
  PushPart header;
  *header.mutable_sender() = model.sender;
  *header.mutable_fence() = model.fences[send.shard];
  header.set_step(options_.step);
  header.set_round(options_.round);
  header.set_part(send.part);
  header.set_parts(static_cast<int32_t>(model.plan.parts[send.shard].size()));
  header.set_pulled_version(options_.versions[send.shard][send.part]);
  header.set_wants_values(!options_.into.empty());
  if (options_.values_codec != nullptr) {
    header.set_values_codec(std::string(options_.values_codec->name()));
  }
  if (options_.encoded != nullptr) {
    header.set_codec(std::string(options_.encoded->codec().name()));
  }
  const PlannedPart& part = model.plan.parts[send.shard][send.part];
  for (const PlannedSlice& slice : part.slices) {
    model.FillSlice(slice, header.add_slices());
  }
  return header;
}

std::vector<TensorView> PushState::PiecesOf(
    const TransferWindow::Send& send) const {
  if (options_.encoded != nullptr) {
    return {
        options_.encoder->Part(options_.encoded.get(), send.shard, send.part)};
  }
  const ClientModel& model = *options_.model;
  std::vector<TensorView> pieces;
  for (const PlannedSlice& slice :
       model.plan.parts[send.shard][send.part].slices) {
    const int64_t element_bytes = model.ElementBytes(slice.tensor, "");
    pieces.push_back(
        {options_.gradients[slice.tensor].data + slice.offset * element_bytes,
         slice.length * element_bytes});
  }
  return pieces;
}

void PushState::Send(ParameterLink* link, Transfer* transfer,
                     const TransferWindow::Send& send) {
  std::optional<absl::Cord> data = MakePinnedCord(transfer, PiecesOf(send));
  if (!data.has_value()) return;
  {
    absl::MutexLock lock(&mu_);
    times_[send.shard][send.part].left = options_.clock->Now();
  }
  link->Push(
      {MakeHeader(send), *std::move(data)}, send.deadline,
      [self = shared_from_this(), send, shared = transfer->shared_from_this()](
          const absl::StatusOr<Frame<PushReply>>& reply) {
        self->OnReply(send, reply, shared.get());
      });
}

void PushState::OnReply(const TransferWindow::Send& send,
                        const absl::StatusOr<Frame<PushReply>>& reply,
                        Transfer* transfer) {
  const bool takes_values = !options_.into.empty();
  // After the end the memory is the caller's again.
  if (takes_values && !transfer->Hold()) return;
  absl::Status status = reply.status();
  if (status.ok() && takes_values) status = TakeValues(send, *reply);
  if (status.ok()) Count(send, reply->header);
  transfer->Answer(send, status);
  if (takes_values) transfer->Release();
}

absl::Status PushState::TakeValues(const TransferWindow::Send& send,
                                   const Frame<PushReply>& reply) {
  {
    absl::MutexLock lock(&mu_);
    PartTimes& times = times_[send.shard][send.part];
    // Sent again, a part may be answered twice, also at once.
    if (times.has_values) return absl::OkStatus();
    times.has_values = true;
    times.new_version = reply.header.version();
  }
  return ScatterValues(options_.model->plan.parts[send.shard][send.part],
                       options_.values_codec, reply.data, options_.into);
}

std::shared_ptr<const PulledVersions> PushState::NewVersions() const {
  if (options_.into.empty() && !options_.model->in_place) return nullptr;
  auto versions = std::make_shared<PulledVersions>();
  versions->model = options_.model;
  versions->bytes = BytesOnTheWay(options_.model->plan, options_.values_codec);
  for (const std::vector<PartTimes>& of_shard : times_) {
    std::vector<int64_t>& shard = versions->parts.emplace_back();
    for (const PartTimes& times : of_shard) shard.push_back(times.new_version);
  }
  return versions;
}

void PushState::Count(const TransferWindow::Send& send,
                      const PushReply& reply) {
  absl::MutexLock lock(&mu_);
  PartTimes& times = times_[send.shard][send.part];
  // Sent again, a part may be answered twice.
  if (times.acknowledged.has_value()) return;
  times.acknowledged = options_.clock->Now();
  if (options_.into.empty()) times.new_version = reply.version();
  staleness_sum_ += reply.staleness();
  outcome_.max_staleness =
      std::max<int64_t>(outcome_.max_staleness, reply.staleness());
  if (reply.duplicate()) ++outcome_.duplicate_parts;
  if (reply.late()) outcome_.late = true;
}

void PushState::TellEncoder(const absl::Status& outcome) {
  PushEncoder* const encoder = options_.encoder;
  if (encoder == nullptr) return;
  absl::MutexLock lock(&mu_);
  const bool has_round = options_.round != 0;
  if (!outcome.ok()) {
    // Of a round nothing is applied before the step is reported.
    return encoder->OnFailed([this, has_round](int shard, int part) {
      mu_.AssertHeld();
      return !has_round && times_[shard][part].acknowledged.has_value();
    });
  }
  if (outcome_.late) return encoder->OnDropped();
  if (has_round) return encoder->OnStored();
  encoder->OnApplied();
}

PushOutcome PushState::Summarize(int64_t retries) {
  absl::MutexLock lock(&mu_);
  outcome_.retries = retries;
  size_t parts = 0;
  for (const std::vector<PartTimes>& of_shard : times_) {
    parts += of_shard.size();
  }
  if (parts > 0) {
    outcome_.mean_staleness =
        static_cast<double>(staleness_sum_) / static_cast<double>(parts);
  }
  const int64_t values = NumValues(options_.gradients);
  outcome_.float32_bytes = values * sizeof(float);
  outcome_.sent_bytes = EncodedBytes(
      options_.encoded == nullptr ? nullptr : &options_.encoded->codec(),
      values);
  for (const std::vector<int64_t>& of_shard : options_.versions) {
    outcome_.pulled_versions.push_back(
        of_shard.empty() ? 0
                         : *std::min_element(of_shard.begin(), of_shard.end()));
  }
  outcome_.new_versions = NewVersions();
  outcome_.sends = Sends();
  return outcome_;
}

std::vector<SliceSend> PushState::Sends() const {
  std::vector<SliceSend> sends;
  const TransferPlan& plan = options_.model->plan;
  for (size_t shard = 0; shard < plan.parts.size(); ++shard) {
    for (size_t part = 0; part < plan.parts[shard].size(); ++part) {
      const PartTimes& times = times_[shard][part];
      for (const PlannedSlice& slice : plan.parts[shard][part].slices) {
        sends.push_back({slice.tensor,
                         slice.length * static_cast<int64_t>(sizeof(float)),
                         times.left, *times.acknowledged});
      }
    }
  }
  return sends;
}

}  // namespace muster
