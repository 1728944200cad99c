#include "worker/client/parameter_client.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/one_shot.h"
#include "common/base/status_macros.h"
#include "common/rpc/deadline.h"
#include "worker/client/encoded_parts.h"
#include "worker/client/held_cord.h"
#include "worker/client/transfer_plan.h"

namespace muster {
namespace {

std::vector<std::vector<int64_t>> PartBytes(const TransferPlan& plan) {
  std::vector<std::vector<int64_t>> bytes(plan.parts.size());
  for (size_t shard = 0; shard < plan.parts.size(); ++shard) {
    for (const PlannedPart& part : plan.parts[shard]) {
      bytes[shard].push_back(part.bytes);
    }
  }
  return bytes;
}

// The same parameters: an epoch is told apart by its number and the ps
// incarnations in it.
bool SameFences(const ClientModel& a, const ClientModel& b) {
  return std::equal(a.fences.begin(), a.fences.end(), b.fences.begin(),
                    b.fences.end(), [](const Fence& x, const Fence& y) {
                      return x.ps_incarnation() == y.ps_incarnation() &&
                             x.model_epoch() == y.model_epoch();
                    });
}

// One pull on its way. Shared by its callbacks.
struct PullState {
  std::shared_ptr<const ClientModel> model;
  // Without a round: none.
  StepToken token;
  std::vector<MutableTensorView> into;
  // [ps task][part]; each is written once, by the callback of its part.
  std::vector<std::vector<int64_t>> versions;
};

// One push on its way. Shared by its callbacks.
struct PushState {
  std::shared_ptr<const ClientModel> model;
  std::vector<TensorView> gradients;
  // Null without a codec.
  std::shared_ptr<const EncodedParts> encoded;
  std::vector<std::vector<int64_t>> versions;
  int64_t step = 0;
  int64_t round = 0;
  bool copies = false;

  absl::Mutex mu;
  PushOutcome outcome ABSL_GUARDED_BY(mu);
  int64_t staleness_sum ABSL_GUARDED_BY(mu) = 0;
  int64_t parts ABSL_GUARDED_BY(mu) = 0;
  // (ps task, part)
  std::set<std::pair<int, int>> acknowledged ABSL_GUARDED_BY(mu);

  void Count(const TransferMachine::Send& send, const PushReply& reply) {
    absl::MutexLock lock(&mu);
    acknowledged.emplace(send.shard, send.part);
    ++parts;
    staleness_sum += reply.staleness();
    outcome.max_staleness =
        std::max<int64_t>(outcome.max_staleness, reply.staleness());
    if (reply.duplicate()) ++outcome.duplicate_parts;
    if (reply.late()) outcome.late = true;
  }

  PushOutcome Summarize(int64_t retries) {
    absl::MutexLock lock(&mu);
    outcome.retries = retries;
    if (parts > 0) {
      outcome.mean_staleness =
          static_cast<double>(staleness_sum) / static_cast<double>(parts);
    }
    outcome.float32_bytes = NumValues(gradients) * sizeof(float);
    outcome.sent_bytes = EncodedBytes(
        encoded == nullptr ? nullptr : &encoded->codec(), NumValues(gradients));
    for (const std::vector<int64_t>& of_shard : versions) {
      outcome.pulled_versions.push_back(
          of_shard.empty()
              ? 0
              : *std::min_element(of_shard.begin(), of_shard.end()));
    }
    return outcome;
  }
};

PushPart MakePushHeader(const PushState& state,
                        const TransferMachine::Send& send) {
  const ClientModel& model = *state.model;
  PushPart header;
  *header.mutable_sender() = model.sender;
  *header.mutable_fence() = model.fences[send.shard];
  header.set_step(state.step);
  header.set_round(state.round);
  header.set_part(send.part);
  header.set_parts(static_cast<int32_t>(model.plan.parts[send.shard].size()));
  header.set_pulled_version(state.versions[send.shard][send.part]);
  if (state.encoded != nullptr) {
    header.set_codec(std::string(state.encoded->codec().name()));
  }
  const PlannedPart& part = model.plan.parts[send.shard][send.part];
  for (const PlannedSlice& slice : part.slices) {
    model.FillSlice(slice, header.add_slices());
  }
  return header;
}

// Where the bytes of one part lie.
std::vector<TensorView> PiecesOf(const PushState& state,
                                 const TransferMachine::Send& send) {
  if (state.encoded != nullptr) {
    return {state.encoded->part(send.shard, send.part)};
  }
  const ClientModel& model = *state.model;
  std::vector<TensorView> pieces;
  for (const PlannedSlice& slice :
       model.plan.parts[send.shard][send.part].slices) {
    const int64_t element_bytes = model.ElementBytes(slice.tensor, "");
    pieces.push_back(
        {state.gradients[slice.tensor].data + slice.offset * element_bytes,
         slice.length * element_bytes});
  }
  return pieces;
}

// The bytes of one part; none if the transfer has ended.
std::optional<absl::Cord> DataOf(const PushState& state, Transfer* transfer,
                                 const TransferMachine::Send& send) {
  const std::vector<TensorView> pieces = PiecesOf(state, send);
  if (!state.copies) return MakeHeldCord(transfer, pieces);
  // While a part is being sent, the push is not done.
  absl::Cord copy;
  for (const TensorView& piece : pieces) {
    copy.Append(absl::string_view(piece.data, piece.size_bytes));
  }
  return copy;
}

void SendPush(const std::shared_ptr<PushState>& state, ParameterLink* link,
              Transfer* transfer, const TransferMachine::Send& send) {
  std::optional<absl::Cord> data = DataOf(*state, transfer, send);
  if (!data.has_value()) return;
  link->Push({MakePushHeader(*state, send), *std::move(data)}, send.deadline,
             [state, send, shared = transfer->shared_from_this()](
                 const absl::StatusOr<PushReply>& reply) {
               if (reply.ok()) state->Count(send, *reply);
               shared->Answer(send, reply.status());
             });
}

// What became of a push.
void TellEncoder(PushState& state, const absl::Status& outcome,
                 PushEncoder* encoder) {
  absl::MutexLock lock(&state.mu);
  const bool has_round = state.round != 0;
  if (!outcome.ok()) {
    // Of a round nothing is applied before the step is reported.
    return encoder->OnFailed([&state, has_round](int shard, int part) {
      state.mu.AssertHeld();
      return !has_round && state.acknowledged.count({shard, part}) != 0;
    });
  }
  if (state.outcome.late) return encoder->OnDropped();
  if (has_round) return encoder->OnStored();
  encoder->OnApplied();
}

PullRequest MakePullRequest(const PullState& state,
                            const TransferMachine::Send& send) {
  const ClientModel& model = *state.model;
  PullRequest request;
  *request.mutable_sender() = model.sender;
  *request.mutable_fence() = model.fences[send.shard];
  for (const PlannedSlice& slice :
       model.plan.parts[send.shard][send.part].slices) {
    model.FillSlice(slice, request.add_slices());
  }
  if (state.token.round() != 0) *request.mutable_token() = state.token;
  return request;
}

void SendPull(const std::shared_ptr<PullState>& state, ParameterLink* link,
              Transfer* transfer, const TransferMachine::Send& send) {
  link->Pull(
      MakePullRequest(*state, send), send.deadline,
      [state, send, shared = transfer->shared_from_this()](
          const absl::StatusOr<Frame<PullReply>>& reply) {
        // After the end the memory is the caller's again.
        if (!shared->Hold()) return;
        absl::Status status = reply.status();
        if (reply.ok()) {
          status = ScatterCord(*state->model,
                               state->model->plan.parts[send.shard][send.part],
                               reply->data, state->into);
          state->versions[send.shard][send.part] = reply->header.version();
        }
        shared->Answer(send, status);
        shared->Release();
      });
}

}  // namespace

ParameterClient::ParameterClient(
    Options options, std::vector<std::unique_ptr<ParameterLink>> links)
    : options_(std::move(options)),
      model_(std::make_shared<ClientModel>()),
      next_transfer_(options_.transfer.seed),
      encoder_(options_.codec == nullptr
                   ? nullptr
                   : std::make_unique<PushEncoder>(options_.codec,
                                                   options_.error_feedback)),
      own_timers_(options_.timers == nullptr ? std::make_unique<TimerQueue>()
                                             : nullptr),
      timers_(options_.timers == nullptr ? own_timers_.get() : options_.timers),
      links_(std::move(links)) {
  assert(links_.size() == options_.ps_names.size() && !links_.empty());
  assert(options_.clock != nullptr);
}

ParameterClient::~ParameterClient() {
  std::vector<std::shared_ptr<Transfer>> transfers;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [id, transfer] : transfers_) transfers.push_back(transfer);
  }
  for (const std::shared_ptr<Transfer>& transfer : transfers) {
    transfer->Cancel(absl::CancelledError("the parameter client is closing"));
  }
  // Nobody sends any more; the links wait for the answers on their way.
  links_.clear();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &ParameterClient::HasNoTransfers));
}

void ParameterClient::Hello(int ps_task, const HelloRequest& request,
                            ReplyCallback<HelloReply> done) {
  links_[ps_task]->Hello(request, options_.clock->Now() + kControlTimeout,
                         std::move(done));
}

absl::Status ParameterClient::SetModel(absl::Span<const TensorDef> tensors,
                                       absl::Span<const int> placement) {
  if (tensors.size() != placement.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        tensors.size(), " tensors, but ", placement.size(), " placements"));
  }
  ASSIGN_OR_RETURN(
      TransferPlan plan,
      PlanTransfer(tensors, placement, num_shards(), options_.max_part_bytes));
  auto next = std::make_shared<ClientModel>(*model());
  next->sender = options_.sender;
  next->tensors.assign(tensors.begin(), tensors.end());
  next->placement.assign(placement.begin(), placement.end());
  next->plan = std::move(plan);
  next->fences.resize(num_shards());
  absl::MutexLock lock(&mu_);
  model_ = std::move(next);
  pulled_versions_.clear();
  return absl::OkStatus();
}

void ParameterClient::SetEpoch(int64_t model_epoch,
                               absl::Span<const uint64_t> ps_incarnations) {
  assert(ps_incarnations.size() == links_.size());
  auto next = std::make_shared<ClientModel>(*model());
  next->sender = options_.sender;
  next->fences.resize(num_shards());
  for (int i = 0; i < num_shards(); ++i) {
    next->fences[i].set_ps_incarnation(ps_incarnations[i]);
    next->fences[i].set_model_epoch(model_epoch);
  }
  if (encoder_ != nullptr && !SameFences(*next, *model())) encoder_->Clear();
  absl::MutexLock lock(&mu_);
  model_ = std::move(next);
  pulled_versions_.clear();
}

std::shared_ptr<const ClientModel> ParameterClient::model() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

void ParameterClient::StartTransfer(
    const std::vector<std::vector<int64_t>>& part_bytes,
    Transfer::SendFunction send, Transfer::DoneFunction done) {
  std::shared_ptr<Transfer> transfer;
  {
    absl::MutexLock lock(&mu_);
    const uint64_t id = next_transfer_++;
    TransferOptions options = options_.transfer;
    options.seed = id;
    transfer = std::make_shared<Transfer>(
        Transfer::Environment{options_.clock, timers_},
        TransferMachine(options, part_bytes, options_.ps_names),
        std::move(send),
        [this, id, done = std::move(done)](const absl::Status& status,
                                           int64_t retries) {
          done(status, retries);
          absl::MutexLock done_lock(&mu_);
          transfers_.erase(id);
        });
    transfers_.emplace(id, transfer);
  }
  transfer->Start();
}

absl::Status ParameterClient::RunTransfer(
    const std::vector<std::vector<int64_t>>& part_bytes,
    Transfer::SendFunction send) {
  OneShot ended(options_.clock);
  absl::Status outcome;
  StartTransfer(part_bytes, std::move(send),
                [&](const absl::Status& status, int64_t) {
                  outcome = status;
                  ended.Notify();
                });
  ended.Wait();
  return outcome;
}

void ParameterClient::Pull(absl::Span<const MutableTensorView> into,
                           const StepToken& token,
                           std::function<void(absl::Status)> done) {
  auto state = std::make_shared<PullState>();
  state->model = model();
  const absl::Status status = state->model->CheckViews(into);
  if (!status.ok()) return done(Annotate(status, "pull"));
  state->token = token;
  state->into.assign(into.begin(), into.end());
  for (const std::vector<PlannedPart>& parts : state->model->plan.parts) {
    state->versions.emplace_back(parts.size(), 0);
  }
  StartTransfer(
      PartBytes(state->model->plan),
      [this, state](Transfer* transfer, const TransferMachine::Send& send) {
        SendPull(state, links_[send.shard].get(), transfer, send);
      },
      [this, state, done = std::move(done)](const absl::Status& outcome,
                                            int64_t) {
        if (outcome.ok()) {
          absl::MutexLock lock(&mu_);
          // Versions of another epoch would be no good to the next push.
          if (model_ == state->model) pulled_versions_ = state->versions;
        }
        done(Annotate(outcome, "pull"));
      });
}

absl::Status ParameterClient::PullAndWait(
    absl::Span<const MutableTensorView> into, const StepToken& token) {
  OneShot ended(options_.clock);
  absl::Status outcome;
  Pull(into, token, [&](const absl::Status& status) {
    outcome = status;
    ended.Notify();
  });
  ended.Wait();
  return outcome;
}

void ParameterClient::Push(
    int64_t step, int64_t round, absl::Span<const TensorView> gradients,
    std::function<void(absl::StatusOr<PushOutcome>)> done) {
  const std::string what = absl::StrCat("push of step ", step);
  auto state = std::make_shared<PushState>();
  {
    absl::MutexLock lock(&mu_);
    state->model = model_;
    state->versions = pulled_versions_;
  }
  const absl::Status status = state->model->CheckViews(gradients);
  if (!status.ok()) return done(Annotate(status, what));
  if (state->versions.empty()) {
    return done(absl::FailedPreconditionError(
        absl::StrCat(what, ": nothing was pulled in this model epoch")));
  }
  state->gradients.assign(gradients.begin(), gradients.end());
  state->step = step;
  state->round = round;
  state->copies = options_.copy_pushes;
  if (options_.codec != nullptr) {
    state->encoded = encoder_->Encode(step, *state->model, gradients);
  }
  StartTransfer(
      PartBytes(state->model->plan),
      [this, state](Transfer* transfer, const TransferMachine::Send& send) {
        SendPush(state, links_[send.shard].get(), transfer, send);
      },
      [this, state, what, done = std::move(done)](const absl::Status& outcome,
                                                  int64_t retries) {
        if (encoder_ != nullptr) TellEncoder(*state, outcome, encoder_.get());
        if (!outcome.ok()) return done(Annotate(outcome, what));
        done(state->Summarize(retries));
      });
}

void ParameterClient::SettlePush(const StepToken& token) {
  if (encoder_ == nullptr || token.round() == 0) return;
  encoder_->Settle(token.chosen_step());
}

absl::StatusOr<PushOutcome> ParameterClient::PushAndWait(
    int64_t step, absl::Span<const TensorView> gradients, int64_t round) {
  OneShot ended(options_.clock);
  absl::StatusOr<PushOutcome> outcome = absl::UnknownError("not ended");
  Push(step, round, gradients, [&](absl::StatusOr<PushOutcome> result) {
    outcome = std::move(result);
    ended.Notify();
  });
  ended.Wait();
  return outcome;
}

}  // namespace muster
