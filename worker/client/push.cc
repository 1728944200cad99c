#include "worker/client/push.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "worker/client/part_place.h"
#include "worker/client/pinned_cord.h"

namespace muster {

Push::Push(Options options)
    : options_(std::move(options)),
      released_(options_.model->tensors.size(), options_.rows_alone),
      end_(absl::UnknownError("not ended")) {
  ended_.emplace(options_.clock);
  const TransferPlan& plan = options_.model->plan;
  for (size_t shard = 0; shard < plan.parts.size(); ++shard) {
    const int of = static_cast<int>(shard);
    times_.emplace_back(TensorParts(of) + RowPartsOf(of));
    std::vector<int>& missing = missing_.emplace_back();
    for (const PlannedPart& part : plan.parts[shard]) {
      missing.push_back(static_cast<int>(part.slices.size()));
    }
  }
}

Push::~Push() {
  if (!finished_ && transfer_ != nullptr) {
    transfer_->Cancel(absl::CancelledError("the step was given up"));
    ended_->Wait();
  }
  GiveUp();
}

void Push::GiveUp() {
  absl::MutexLock lock(&mu_);
  if (!std::exchange(owes_encoder_, false)) return;
  TellEncoder(absl::UnavailableError("the step was given up"));
}

void Push::Release(int tensor) {
  released_[tensor] = true;
  std::vector<PartId> whole;
  const TransferPlan& plan = options_.model->plan;
  for (const PartId& id : plan.parts_of[tensor]) {
    if (!plan.parts[id.shard][id.part].is_pushed()) continue;
    if (--missing_[id.shard][id.part] == 0) whole.push_back(id);
  }
  if (whole.empty()) return;
  has_left_ = true;
  transfer_->OpenParts(whole);
}

void Push::ReleaseOthers() {
  for (size_t tensor = 0; tensor < released_.size(); ++tensor) {
    if (!released_[tensor]) Release(static_cast<int>(tensor));
  }
  if (!options_.rows.has_value() || std::exchange(rows_released_, true)) return;
  std::vector<PartId> parts;
  ForEachPushed([&](int shard, int part) {
    if (IsOfRows(shard, part)) parts.push_back({shard, part});
  });
  has_left_ = true;
  transfer_->OpenParts(parts);
}

absl::StatusOr<PushResult> Push::Finish() {
  ReleaseOthers();
  ended_->Wait();
  finished_ = true;
  may_resume_ = absl::IsUnavailable(end_.status());
  return std::move(end_);
}

std::vector<std::vector<int64_t>> Push::PartBytes() const {
  std::vector<std::vector<int64_t>> bytes;
  for (size_t i = 0; i < options_.model->plan.parts.size(); ++i) {
    const int shard = static_cast<int>(i);
    bytes.emplace_back(TensorParts(shard) + RowPartsOf(shard),
                       TransferWindow::kLeftOut);
  }
  ForEachPushed([&](int shard, int part) {
    bytes[shard][part] = IsOfRows(shard, part)
                             ? RowsOf(shard, part).bytes
                             : options_.model->plan.parts[shard][part].bytes;
  });
  return bytes;
}

std::vector<std::vector<int64_t>> Push::Resume() {
  std::vector<std::vector<int64_t>> part_bytes = PartBytes();
  finished_ = may_resume_ = false;
  ended_.emplace(options_.clock);
  absl::MutexLock lock(&mu_);
  owes_encoder_ = false;
  ForEachPushed([&](int shard, int part) {
    mu_.AssertHeld();
    if (!times_[shard][part].acknowledged.has_value()) return;
    part_bytes[shard][part] = TransferWindow::kLeftOut;
  });
  return part_bytes;
}

void Push::End(absl::StatusOr<PushResult> result) {
  end_ = std::move(result);
  ended_->Notify();
}

PushPart Push::MakeHeader(const TransferWindow::Send& send) const {
  const ClientModel& model = *options_.model;
  PushPart header;
  model.FillHead(send.shard, &header);
  header.set_step(options_.step);
  header.set_round(options_.round);
  if (options_.counts.steps() > 0) *header.mutable_counts() = options_.counts;
  header.set_learning_rate_factor(options_.learning_rate_factor);
  const int of_tensors = PushedTensorParts(send.shard);
  header.set_parts(of_tensors + RowPartsOf(send.shard));
  header.set_pulled_version(PulledVersion(send.shard, send.part));
  if (IsOfRows(send.shard, send.part)) {
    header.set_is_rows(true);
    header.set_part(of_tensors + send.part - TensorParts(send.shard));
    options_.rows->parts.FillRuns(RowsOf(send.shard, send.part),
                                  header.mutable_rows());
  } else {
    DescribeTensors(model.plan.parts[send.shard][send.part], &header);
  }
  return header;
}

void Push::DescribeTensors(const PlannedPart& part, PushPart* header) const {
  header->set_part(part.pushed_as);
  header->set_wants_values(!options_.into.empty());
  if (options_.values_codec != nullptr) {
    header->set_values_codec(std::string(options_.values_codec->name()));
  }
  if (options_.encoded != nullptr) {
    header->set_codec(std::string(options_.encoded->codec().name()));
  }
  for (const PlannedSlice& slice : part.slices) {
    options_.model->FillSlice(slice, header->add_slices());
  }
}

std::optional<absl::Cord> Push::DataOf(Transfer* transfer,
                                       const TransferWindow::Send& send) const {
  if (!IsOfRows(send.shard, send.part)) {
    return MakePinnedCord(transfer, PiecesOf(send));
  }
  // Copied now, since they are in another order there: the transfer does not
  // end while this thread sends.
  return options_.rows->parts.DataOf(RowsOf(send.shard, send.part),
                                     options_.rows->columns);
}

std::vector<TensorView> Push::PiecesOf(const TransferWindow::Send& send) const {
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

void Push::Send(ParameterLink* link, Transfer* transfer,
                const TransferWindow::Send& send) {
  std::optional<absl::Cord> data = DataOf(transfer, send);
  if (!data.has_value()) return;
  {
    absl::MutexLock lock(&mu_);
    times_[send.shard][send.part].left = options_.clock->Now();
  }
  const bool wants_values = WantsValues(send);
  // After the end the memory is the caller's again, and once `done` was called
  // this is gone. Until then what was applied is counted.
  const auto on_reply = [this, send, wants_values,
                         shared = transfer->shared_from_this()](
                            const absl::StatusOr<Frame<PushReply>>& reply) {
    if (wants_values ? !shared->Hold() : !shared->HoldDone()) return;
    OnReply(send, reply, shared.get());
  };
  Frame<PushPart> request{MakeHeader(send), *std::move(data)};
  if (!wants_values) {
    return link->Push(std::move(request), send.deadline, on_reply);
  }
  const PlannedPart& part = options_.model->plan.parts[send.shard][send.part];
  const auto place = std::make_shared<PartPlace>(
      transfer, part, options_.values_codec, options_.into);
  link->PushTo(
      place, std::move(request), send.deadline,
      [place, on_reply](const absl::StatusOr<Frame<PushReply>>& reply) {
        place->Close();
        on_reply(reply);
      });
}

void Push::OnReply(const TransferWindow::Send& send,
                   const absl::StatusOr<Frame<PushReply>>& reply,
                   Transfer* transfer) {
  absl::Status status = reply.status();
  if (status.ok() && WantsValues(send)) status = Receive(send, *reply);
  if (status.ok()) Count(send, reply->header);
  transfer->Answer(send, status);
  transfer->Release();
}

absl::Status Push::Receive(const TransferWindow::Send& send,
                           const Frame<PushReply>& reply) {
  {
    absl::MutexLock lock(&mu_);
    PartTimes& times = times_[send.shard][send.part];
    // Sent again, a part may be answered twice, also at once.
    if (times.has_values) return absl::OkStatus();
    times.has_values = true;
    times.new_version = reply.header.version();
  }
  if (reply.is_placed) return absl::OkStatus();
  return ScatterValues(options_.model->plan.parts[send.shard][send.part],
                       options_.values_codec, reply.data, options_.into);
}

template <typename Visit>
void Push::ForEachPushed(const Visit& visit) const {
  for (size_t i = 0; i < options_.model->plan.parts.size(); ++i) {
    const int shard = static_cast<int>(i);
    const int parts = TensorParts(shard) + RowPartsOf(shard);
    for (int part = 0; part < parts; ++part) {
      if (IsPushed(shard, part)) visit(shard, part);
    }
  }
}

std::vector<int64_t> Push::OldestVersions() const {
  std::vector<int64_t> oldest(options_.versions.size(), 0);
  std::vector<bool> has_one(oldest.size(), false);
  ForEachPushed([&](int shard, int part) {
    const int64_t version = PulledVersion(shard, part);
    const bool is_first = !has_one[shard];
    has_one[shard] = true;
    oldest[shard] = is_first ? version : std::min(oldest[shard], version);
  });
  return oldest;
}

std::shared_ptr<const PulledVersions> Push::NewVersions() const {
  if (options_.into.empty() && !options_.model->in_place) return nullptr;
  auto versions = std::make_shared<PulledVersions>();
  versions->model = options_.model;
  // In place no value came.
  if (!options_.model->in_place) CountBytes(versions.get());
  // Frozen parts stay what they were.
  versions->parts = options_.versions;
  ForEachPushed([&](int shard, int part) {
    mu_.AssertHeld();
    const int64_t version = times_[shard][part].new_version;
    if (!IsOfRows(shard, part)) {
      versions->parts[shard][part] = version;
    } else if (options_.model->plan.parts[shard].front().slices.empty()) {
      // That of a shard without tensors.
      versions->parts[shard].front() = version;
    }
  });
  return versions;
}

void Push::CountBytes(PulledVersions* versions) const {
  const TransferPlan& plan = options_.model->plan;
  versions->bytes = BytesOnTheWay(plan, PartsOf::kPush, options_.values_codec);
  versions->others_bytes =
      BytesOnTheWay(plan, PartsOf::kPush, options_.values_codec,
                    /*except=*/options_.model->own_shard);
  versions->float32_bytes =
      BytesOnTheWay(plan, PartsOf::kPush, /*codec=*/nullptr);
}

void Push::Count(const TransferWindow::Send& send, const PushReply& reply) {
  absl::MutexLock lock(&mu_);
  PartTimes& times = times_[send.shard][send.part];
  // Sent again, a part may be answered twice.
  if (times.acknowledged.has_value()) return;
  times.acknowledged = options_.clock->Now();
  if (!WantsValues(send)) times.new_version = reply.version();
  staleness_sum_ += reply.staleness();
  result_.max_staleness =
      std::max<int64_t>(result_.max_staleness, reply.staleness());
  if (reply.duplicate()) ++result_.duplicate_parts;
  if (reply.late()) result_.late = true;
}

void Push::TellEncoder(const absl::Status& outcome) {
  PushEncoder* const encoder = options_.encoder;
  if (encoder == nullptr) return;
  const bool has_round = options_.round != 0;
  if (!outcome.ok()) {
    // Nothing of a round is applied before the step is reported.
    return encoder->OnFailed([this, has_round](int shard, int part) {
      mu_.AssertHeld();
      return !has_round && times_[shard][part].acknowledged.has_value();
    });
  }
  if (result_.late) return encoder->OnDropped();
  if (has_round) return encoder->OnStored();
  encoder->OnApplied();
}

absl::StatusOr<PushResult> Push::Conclude(const absl::Status& outcome,
                                          int64_t retries) {
  absl::MutexLock lock(&mu_);
  result_.retries += retries;
  owes_encoder_ = absl::IsUnavailable(outcome);
  if (!owes_encoder_) TellEncoder(outcome);
  if (!outcome.ok()) return outcome;
  int parts = 0;
  ForEachPushed([&parts](int, int) { ++parts; });
  if (parts > 0) {
    result_.mean_staleness =
        static_cast<double>(staleness_sum_) / static_cast<double>(parts);
  }
  CountSentBytes();
  result_.pulled_versions = OldestVersions();
  result_.new_versions = NewVersions();
  result_.sends = Sends();
  return std::move(result_);
}

void Push::CountSentBytes() {
  const TransferPlan& plan = options_.model->plan;
  const Codec* const codec =
      options_.encoded == nullptr ? nullptr : &options_.encoded->codec();
  if (!options_.rows_alone) {
    result_.float32_bytes =
        BytesOnTheWay(plan, PartsOf::kPush, /*codec=*/nullptr);
    result_.sent_bytes = BytesOnTheWay(plan, PartsOf::kPush, codec);
    result_.others_bytes = BytesOnTheWay(plan, PartsOf::kPush, codec,
                                         /*except=*/options_.model->own_shard);
  }
  if (!options_.rows.has_value()) return;
  // A process with a shard of its own has no tables.
  const int64_t of_rows = options_.rows->parts.bytes();
  result_.float32_bytes += of_rows;
  result_.sent_bytes += of_rows;
  result_.others_bytes += of_rows;
}

std::vector<SliceSend> Push::Sends() const {
  std::vector<SliceSend> sends;
  ForEachPushed([&](int shard, int part) {
    mu_.AssertHeld();
    const PartTimes& times = times_[shard][part];
    if (IsOfRows(shard, part)) {
      sends.push_back({/*tensor=*/-1, RowsOf(shard, part).bytes, times.left,
                       *times.acknowledged, shard, part});
      return;
    }
    for (const PlannedSlice& slice :
         options_.model->plan.parts[shard][part].slices) {
      sends.push_back({slice.tensor,
                       slice.length * static_cast<int64_t>(sizeof(float)),
                       times.left, *times.acknowledged, shard, part});
    }
  });
  return sends;
}

}  // namespace muster
