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
#include "worker/client/push_state.h"

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

std::string PushName(int64_t step) {
  return absl::StrCat("push of step ", step);
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

absl::StatusOr<TransferPlan> ParameterClient::Plan(
    absl::Span<const TensorDef> tensors,
    absl::Span<const int> placement) const {
  std::vector<int64_t> part_bytes;
  for (const std::unique_ptr<ParameterLink>& link : links_) {
    part_bytes.push_back(options_.max_part_bytes > 0 ? options_.max_part_bytes
                                                     : link->best_part_bytes());
  }
  return PlanTransfer(tensors, placement, part_bytes);
}

absl::Status ParameterClient::SetModel(absl::Span<const TensorDef> tensors,
                                       absl::Span<const int> placement) {
  if (tensors.size() != placement.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        tensors.size(), " tensors, but ", placement.size(), " placements"));
  }
  ASSIGN_OR_RETURN(TransferPlan plan, Plan(tensors, placement));
  auto next = std::make_shared<ClientModel>(*model());
  next->sender = options_.sender;
  next->tensors.assign(tensors.begin(), tensors.end());
  next->placement.assign(placement.begin(), placement.end());
  next->plan = std::move(plan);
  next->fences.resize(num_shards());
  next->in_place = false;
  absl::MutexLock lock(&mu_);
  model_ = std::move(next);
  pulled_versions_ = nullptr;
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
  next->in_place = false;
  if (!SameFences(*next, *model())) {
    // The shards know no step of these fences.
    absl::StatusOr<TransferPlan> plan = Plan(next->tensors, next->placement);
    assert(plan.ok());
    next->plan = *std::move(plan);
    if (encoder_ != nullptr) encoder_->Clear();
  }
  absl::MutexLock lock(&mu_);
  model_ = std::move(next);
  pulled_versions_ = nullptr;
}

std::shared_ptr<const ClientModel> ParameterClient::model() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

std::shared_ptr<Transfer> ParameterClient::StartTransfer(
    const std::vector<std::vector<int64_t>>& part_bytes, PartsAre parts,
    Transfer::SendFunction send, Transfer::DoneFunction done) {
  std::shared_ptr<Transfer> transfer;
  {
    absl::MutexLock lock(&mu_);
    const uint64_t id = next_transfer_++;
    TransferOptions options = options_.transfer;
    options.seed = id;
    TransferWindow machine(options, part_bytes, options_.ps_names);
    if (parts == PartsAre::kClosed) machine.CloseParts();
    transfer = std::make_shared<Transfer>(
        Transfer::Environment{options_.clock, timers_, options_.say},
        std::move(machine), std::move(send),
        [this, id, done = std::move(done)](const absl::Status& status,
                                           int64_t retries) {
          done(status, retries);
          absl::MutexLock done_lock(&mu_);
          transfers_.erase(id);
        });
    transfers_.emplace(id, transfer);
  }
  transfer->Start();
  return transfer;
}

absl::Status ParameterClient::RunTransfer(
    const std::vector<std::vector<int64_t>>& part_bytes,
    Transfer::SendFunction send) {
  OneShot ended(options_.clock);
  absl::Status outcome;
  StartTransfer(part_bytes, PartsAre::kOpen, std::move(send),
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
  const absl::StatusOr<std::shared_ptr<PullState>> state =
      MakePull(into, token, /*codec=*/nullptr);
  if (!state.ok()) return done(state.status());
  StartPull(*state, std::move(done));
}

absl::StatusOr<std::shared_ptr<PullState>> ParameterClient::MakePull(
    absl::Span<const MutableTensorView> into, const StepToken& token,
    const Codec* codec) const {
  PullState::Options pull;
  pull.model = model();
  RETURN_IF_ERROR(Annotate(pull.model->CheckViews(into), "pull"));
  pull.token = token;
  pull.codec = codec;
  pull.into.assign(into.begin(), into.end());
  return std::make_shared<PullState>(std::move(pull));
}

std::shared_ptr<Transfer> ParameterClient::StartPull(
    const std::shared_ptr<PullState>& state,
    std::function<void(absl::Status)> done) {
  return StartTransfer(
      PartBytes(state->model()->plan), PartsAre::kOpen,
      [this, state](Transfer* transfer, const TransferWindow::Send& send) {
        state->Send(links_[send.shard].get(), transfer, send);
      },
      [this, state, done = std::move(done)](const absl::Status& outcome,
                                            int64_t) {
        if (outcome.ok()) KeepVersions(state->versions());
        done(Annotate(outcome, "pull"));
      });
}

void ParameterClient::KeepVersions(
    std::shared_ptr<const PulledVersions> versions) {
  absl::MutexLock lock(&mu_);
  // Those of another epoch would be no good to the next push.
  if (model_ == versions->model) pulled_versions_ = std::move(versions);
}

absl::StatusOr<std::unique_ptr<GradualPull>> ParameterClient::BeginPull(
    absl::Span<const MutableTensorView> into, const StepToken& token) {
  ASSIGN_OR_RETURN(const std::shared_ptr<PullState> state,
                   MakePull(into, token, options_.pull_codec));
  auto pull = std::make_unique<GradualPull>(options_.clock, state->model());
  state->set_on_arrive(
      [pull = pull.get()](PartId part) { pull->Arrive(part); });
  pull->Start(StartPull(
      state, [pull = pull.get(), versions = state->versions()](
                 const absl::Status& end) { pull->End(end, versions); }));
  return pull;
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

absl::StatusOr<std::shared_ptr<PushState>> ParameterClient::MakePush(
    int64_t step, int64_t round, absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    std::shared_ptr<const PulledVersions> versions) {
  PushState::Options push;
  {
    absl::MutexLock lock(&mu_);
    push.model = model_;
    if (versions == nullptr) versions = pulled_versions_;
  }
  const std::string what = PushName(step);
  RETURN_IF_ERROR(Annotate(push.model->CheckViews(gradients), what));
  if (!into.empty()) {
    RETURN_IF_ERROR(Annotate(push.model->CheckViews(into), what));
    push.into.assign(into.begin(), into.end());
    push.values_codec = options_.pull_codec;
  }
  if (versions == nullptr || versions->model != push.model) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": nothing was pulled in this model epoch"));
  }
  push.versions = versions->parts;
  push.gradients.assign(gradients.begin(), gradients.end());
  push.step = step;
  push.round = round;
  push.clock = options_.clock;
  if (options_.codec != nullptr) {
    push.encoder = encoder_.get();
    push.encoded = encoder_->Begin(step, *push.model, gradients);
  }
  return std::make_shared<PushState>(std::move(push));
}

std::shared_ptr<Transfer> ParameterClient::StartPush(
    const std::shared_ptr<PushState>& state, PartsAre parts,
    std::function<void(absl::StatusOr<PushOutcome>)> done) {
  return StartTransfer(
      PartBytes(state->model()->plan), parts,
      [this, state](Transfer* transfer, const TransferWindow::Send& send) {
        state->Send(links_[send.shard].get(), transfer, send);
      },
      [this, state, done = std::move(done)](const absl::Status& outcome,
                                            int64_t retries) {
        state->TellEncoder(outcome);
        if (!outcome.ok()) {
          return done(Annotate(outcome, PushName(state->step())));
        }
        PushOutcome summary = state->Summarize(retries);
        if (summary.new_versions != nullptr) {
          KeepVersions(summary.new_versions);
        }
        done(std::move(summary));
      });
}

void ParameterClient::Push(
    int64_t step, int64_t round, absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    std::function<void(absl::StatusOr<PushOutcome>)> done) {
  const absl::StatusOr<std::shared_ptr<PushState>> state =
      MakePush(step, round, gradients, into, /*versions=*/nullptr);
  if (!state.ok()) return done(state.status());
  StartPush(*state, PartsAre::kOpen, std::move(done));
}

absl::StatusOr<std::unique_ptr<GradualPush>> ParameterClient::BeginPush(
    int64_t step, int64_t round, absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    std::shared_ptr<const PulledVersions> versions) {
  ASSIGN_OR_RETURN(const std::shared_ptr<PushState> state,
                   MakePush(step, round, gradients, into, std::move(versions)));
  auto push = std::make_unique<GradualPush>(options_.clock, state->model());
  push->Start(StartPush(state, PartsAre::kClosed,
                        [push = push.get()](absl::StatusOr<PushOutcome> end) {
                          push->End(std::move(end));
                        }));
  return push;
}

void ParameterClient::SettlePush(const StepToken& token) {
  if (encoder_ == nullptr || token.round() == 0) return;
  encoder_->Settle(token.chosen_step());
}

absl::StatusOr<PushOutcome> ParameterClient::PushAndWait(
    int64_t step, absl::Span<const TensorView> gradients, int64_t round,
    absl::Span<const MutableTensorView> into) {
  OneShot ended(options_.clock);
  absl::StatusOr<PushOutcome> outcome = absl::UnknownError("not ended");
  Push(step, round, gradients, into, [&](absl::StatusOr<PushOutcome> result) {
    outcome = std::move(result);
    ended.Notify();
  });
  ended.Wait();
  return outcome;
}

}  // namespace muster
