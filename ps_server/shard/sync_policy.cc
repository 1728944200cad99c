#include "ps_server/shard/sync_policy.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/shard/row_mean.h"

namespace muster {
namespace {

bool IsOf(const StoredGradient& gradient, const Sender& sender, int64_t step) {
  return gradient.sender().incarnation() == sender.incarnation() &&
         gradient.step() == step;
}

int64_t CountBlocks(const TensorTable& tensors) {
  return BlockNumbers(tensors).total();
}

DuplicateMark MarkOf(const StoredGradient& gradient) {
  DuplicateMark mark;
  *mark.mutable_sender() = gradient.sender();
  mark.set_step(gradient.step());
  for (int32_t part = 0; part < gradient.parts(); ++part) mark.add_parts(part);
  return mark;
}

}  // namespace

const StoredGradient* SyncPolicy::Find(const PushedPart& part) const {
  const auto it = gradients_.find(KeyOf(part.sender));
  if (it == gradients_.end() || !IsOf(it->second, part.sender, part.step)) {
    return nullptr;
  }
  return &it->second;
}

absl::StatusOr<PartFate> SyncPolicy::CheckRound(absl::string_view what,
                                                const PushedPart& part) const {
  if (part.round < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": it names no round; a step of synchronous ",
                     "replication is taken with a token"));
  }
  if (!IsCount(part.round)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": it is of round ", part.round,
                     ", no round is above ", kMaxCount));
  }
  if (applied_.has_value() && part.round <= *applied_) return PartFate::kLate;
  if (!applied_.has_value() || part.round > *applied_ + 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": it is of round ", part.round, ", the shard ",
        applied_.has_value() ? absl::StrCat("is at update ", *applied_)
                             : std::string("has seen no token"),
        "; pull with the round's token first"));
  }
  if (part.staleness != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": its parameters were pulled ", part.staleness,
        " updates before round ", part.round, "; pull with the round's token"));
  }
  return PartFate::kAccepted;
}

absl::StatusOr<PartFate> SyncPolicy::CheckPart(
    absl::string_view what, const PushedPart& part,
    const TensorTable& tensors) const {
  ASSIGN_OR_RETURN(const PartFate fate, CheckRound(what, part));
  if (fate == PartFate::kLate) return fate;
  const BlockNumbers numbers(tensors);
  const StoredGradient* const known = Find(part);
  const StoredGradient first(part, known == nullptr ? numbers.total() : 0);
  RETURN_IF_ERROR((known == nullptr ? first : *known)
                      .CheckPart(what, part, numbers, tensors));
  const auto replaced = gradients_.find(KeyOf(part.sender));
  const int64_t freed = known == nullptr && replaced != gradients_.end()
                            ? replaced->second.bytes()
                            : 0;
  const int64_t size = part.bytes();
  if (bytes_ - freed + size <= max_bytes_) return PartFate::kAccepted;
  return absl::ResourceExhaustedError(absl::StrCat(
      what, ": ", size, " bytes, the gradients of this round take ", bytes_,
      " of ", max_bytes_, " already; use more ps tasks or fewer workers"));
}

bool SyncPolicy::OnPart(PushedPart part, const TensorTable& tensors,
                        PartApplier& /*applier*/) {
  const BlockNumbers numbers(tensors);
  if (Find(part) == nullptr) {
    const TaskKey key = KeyOf(part.sender);
    const auto old = gradients_.find(key);
    if (old != gradients_.end()) {
      bytes_ -= old->second.bytes();
      gradients_.erase(old);
    }
    gradients_.emplace(key, StoredGradient(part, numbers.total()));
  }
  StoredGradient& gradient = gradients_.find(KeyOf(part.sender))->second;
  bytes_ += part.bytes();
  // Values may be written to where they lie.
  const bool stays = part.has_own_memory && part.publish_to == nullptr;
  if (!stays) part.data = kept_.Copy(part.data);
  gradient.Add(std::move(part), numbers, tensors);
  return false;
}

absl::Status SyncPolicy::CheckChosen(absl::string_view what,
                                     const StepToken& token) const {
  const std::string update = absl::StrCat(what, ": update ", token.round() - 1,
                                          ", of which this shard is told, ");
  if (token.chosen().empty()) {
    return absl::InternalError(absl::StrCat(
        update, "has no gradient; the shard is at update ", *applied_));
  }
  std::set<TaskKey> tasks;
  for (const ChosenStep& step : token.chosen()) {
    const auto it = gradients_.find(KeyOf(step.sender()));
    if (!tasks.insert(KeyOf(step.sender())).second) {
      return absl::InternalError(
          absl::StrCat(update, "has ", TaskName(step.sender()), " twice"));
    }
    if (it == gradients_.end() ||
        !IsOf(it->second, step.sender(), step.step()) || !it->second.whole()) {
      return absl::InternalError(absl::StrCat(
          update, "has step ", step.step(), " of ", TaskName(step.sender()),
          " (incarnation ", absl::Hex(step.sender().incarnation()),
          "), which is not whole here; nothing was applied"));
    }
  }
  return absl::OkStatus();
}

double SyncPolicy::ChooseRateFactor(const StepToken& token) {
  std::map<TaskKey, double> factors;
  for (const ChosenStep& step : token.chosen()) {
    const TaskKey key = KeyOf(step.sender());
    factors[key] = gradients_.find(key)->second.rate_factor();
  }
  const auto& [first, chosen] = *factors.begin();
  for (const auto& [task, factor] : factors) {
    if (factor == chosen || !rate_difference_.empty()) continue;
    rate_difference_ = absl::StrCat(
        "update ", token.round() - 1,
        ": the workers' learning rates differ: ", TaskName(first), " has ",
        chosen, " times the optimizer's, ", TaskName(task), " ", factor,
        " times; updates are made with that of ", TaskName(first),
        " (said once): give all workers one scheduler");
  }
  return chosen;
}

std::vector<StoredGradient> SyncPolicy::TakeChosen(const StepToken& token) {
  std::vector<StoredGradient> chosen;
  for (const ChosenStep& step : token.chosen()) {
    const TaskKey key = KeyOf(step.sender());
    StoredGradient& gradient = gradients_.find(key)->second;
    newest_chosen_[key] = MarkOf(gradient);
    chosen.push_back(std::move(gradient));
  }
  gradients_.clear();
  bytes_ = 0;
  return chosen;
}

absl::Status SyncPolicy::OnToken(absl::string_view what, const StepToken& token,
                                 const TensorTable& tensors,
                                 PartApplier& applier) {
  if (token.round() == 0) return absl::OkStatus();
  if (!IsCount(token.round())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": a token of round ", token.round(),
                     "; rounds are counted from 1 to ", kMaxCount));
  }
  const int64_t update = token.round() - 1;
  if (applied_.has_value() && update <= *applied_) return absl::OkStatus();
  // The first token after a load; or a shard that nobody pulls from.
  if ((!applied_.has_value() && token.chosen().empty()) ||
      (CountBlocks(tensors) == 0 && !has_tables_)) {
    applied_ = update;
    return absl::OkStatus();
  }
  if (!applied_.has_value() || update > *applied_ + 1) {
    return absl::InternalError(absl::StrCat(
        what, ": the token is of round ", token.round(), ", the shard ",
        applied_.has_value() ? absl::StrCat("is at update ", *applied_)
                             : std::string("has seen no token"),
        "; it was never told of the update between"));
  }
  RETURN_IF_ERROR(CheckChosen(what, token));
  Settle(tensors, applier);
  const double rate_factor = ChooseRateFactor(token);
  std::vector<StoredGradient> chosen = TakeChosen(token);
  std::vector<std::vector<CheckedRows>> rows;
  for (StoredGradient& gradient : chosen) rows.push_back(gradient.TakeRows());
  ApplyRowMeans(rows, rate_factor, applier);
  update_ = PendingUpdate(std::move(chosen), rate_factor, tensors);
  applier.CountUpdate();
  applied_ = update;
  return absl::OkStatus();
}

absl::Status SyncPolicy::OnCut(absl::string_view what, const StepToken& token,
                               const TensorTable& tensors,
                               PartApplier& applier) {
  if (token.round() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": a cut of synchronous replication needs the ",
                     "token that PauseRounds answers"));
  }
  RETURN_IF_ERROR(OnToken(what, token, tensors, applier));
  Settle(tensors, applier);
  if (*applied_ == token.round() - 1) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      what, ": the cut is after update ", token.round() - 1,
      ", the shard is at update ", *applied_, "; hold the rounds again"));
}

std::optional<std::vector<DuplicateMark>> SyncPolicy::AppliedSteps() const {
  std::vector<DuplicateMark> marks;
  for (const auto& [key, mark] : newest_chosen_) marks.push_back(mark);
  return marks;
}

}  // namespace muster
