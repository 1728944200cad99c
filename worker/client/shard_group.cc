#include "worker/client/shard_group.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "common/base/one_shot.h"

namespace muster {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(500);

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

ShardGroup::ShardGroup(Options options,
                       std::vector<std::unique_ptr<ParameterLink>> links)
    : options_(std::move(options)),
      model_(std::make_shared<ClientModel>()),
      next_transfer_(options_.transfer.seed),
      self_(std::make_shared<ShardGroup*>(this)),
      own_timers_(options_.timers == nullptr ? std::make_unique<TimerQueue>()
                                             : nullptr),
      timers_(options_.timers == nullptr ? own_timers_.get() : options_.timers),
      links_(std::move(links)) {
  assert(links_.size() == options_.ps_names.size() && !links_.empty());
  assert(options_.clock != nullptr);
}

ShardGroup::~ShardGroup() {
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
  mu_.Await(absl::Condition(this, &ShardGroup::HasNoTransfers));
}

absl::Status ShardGroup::Plan(ClientModel* model) const {
  model->part_bytes.clear();
  for (const std::unique_ptr<ParameterLink>& link : links_) {
    model->part_bytes.push_back(options_.max_part_bytes > 0
                                    ? options_.max_part_bytes
                                    : link->best_part_bytes());
  }
  ASSIGN_OR_RETURN(model->plan, PlanTransfer(model->tensors, model->placement,
                                             model->part_bytes));
  if (model->tables.empty()) return absl::OkStatus();
  // Rows are on every shard, which wants every token and tells its version: a
  // pull asks those without tensors for that alone.
  for (std::vector<PlannedPart>& parts : model->plan.parts) {
    if (parts.empty()) parts.emplace_back();
  }
  return absl::OkStatus();
}

absl::Status ShardGroup::SetModel(absl::Span<const TensorDef> tensors,
                                  const Placement& placement,
                                  absl::Span<const TableDef> tables) {
  RETURN_IF_ERROR(CheckTables(tables, tensors));
  auto next = std::make_shared<ClientModel>(*model());
  next->sender = options_.sender;
  next->tensors.assign(tensors.begin(), tensors.end());
  next->placement = placement;
  next->tables.assign(tables.begin(), tables.end());
  RETURN_IF_ERROR(Plan(next.get()));
  next->own_shard = options_.own_shard;
  next->fences.resize(size());
  next->in_place = false;
  absl::MutexLock lock(&mu_);
  model_ = std::move(next);
  return absl::OkStatus();
}

bool ShardGroup::SetEpoch(int64_t model_epoch,
                          absl::Span<const uint64_t> ps_incarnations) {
  assert(ps_incarnations.size() == links_.size());
  auto next = std::make_shared<ClientModel>(*model());
  next->sender = options_.sender;
  next->fences.resize(size());
  for (int i = 0; i < size(); ++i) {
    next->fences[i].set_ps_incarnation(ps_incarnations[i]);
    next->fences[i].set_model_epoch(model_epoch);
  }
  next->in_place = false;
  const bool is_new = !SameFences(*next, *model());
  if (is_new) {
    // The shards know no step of these fences.
    [[maybe_unused]] const absl::Status planned = Plan(next.get());
    assert(planned.ok());
  }
  absl::MutexLock lock(&mu_);
  model_ = std::move(next);
  return is_new;
}

absl::Status ShardGroup::SetInPlace(
    const std::shared_ptr<const ClientModel>& from) {
  auto next = std::make_shared<ClientModel>(*from);
  next->in_place = true;
  absl::MutexLock lock(&mu_);
  if (model_ != from) {
    return absl::AbortedError(
        "another model epoch was set while the parameters were mapped");
  }
  model_ = std::move(next);
  return absl::OkStatus();
}

std::shared_ptr<const ClientModel> ShardGroup::model() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

std::shared_ptr<Transfer> ShardGroup::Start(
    const std::vector<std::vector<int64_t>>& part_bytes, PartsAre parts,
    Transfer::SendFunction send, Transfer::DoneFunction done) {
  std::shared_ptr<Transfer> transfer;
  {
    absl::MutexLock lock(&mu_);
    const uint64_t id = next_transfer_++;
    TransferOptions options = options_.transfer;
    options.seed = id;
    TransferWindow window(options, part_bytes, options_.ps_names);
    for (int i = 0; i < size(); ++i) {
      window.SuitWay(i, link(i).best_window_parts());
    }
    if (parts == PartsAre::kClosed) window.CloseParts();
    transfer = std::make_shared<Transfer>(
        Transfer::Environment{options_.clock, timers_, options_.reporter},
        std::move(window), std::move(send),
        [this, id, done = std::move(done)](const absl::Status& status,
                                           int64_t retries) {
          done(status, retries);
          absl::MutexLock done_lock(&mu_);
          transfers_.erase(id);
        });
    transfers_.emplace(id, transfer);
    if (!looks_later_) LookLater();
  }
  transfer->Start();
  return transfer;
}

void ShardGroup::LookLater() {
  looks_later_ = true;
  timers_->RunAt(options_.clock->Now() + kLookEvery,
                 [weak = std::weak_ptr<ShardGroup*>(self_)] {
                   const std::shared_ptr<ShardGroup*> self = weak.lock();
                   if (self != nullptr) (*self)->LookForSilence();
                 });
}

void ShardGroup::LookForSilence() {
  std::vector<std::shared_ptr<Transfer>> transfers;
  {
    absl::MutexLock lock(&mu_);
    looks_later_ = false;
    for (const auto& [id, transfer] : transfers_) transfers.push_back(transfer);
    if (!transfers.empty()) LookLater();
  }
  for (const std::shared_ptr<Transfer>& transfer : transfers) {
    transfer->SaySilence();
  }
}

absl::Status ShardGroup::Run(
    const std::vector<std::vector<int64_t>>& part_bytes,
    Transfer::SendFunction send) {
  OneShot ended(options_.clock);
  absl::Status outcome;
  Start(part_bytes, PartsAre::kOpen, std::move(send),
        [&](const absl::Status& status, int64_t) {
          outcome = status;
          ended.Notify();
        });
  ended.Wait();
  return outcome;
}

}  // namespace muster
