#include "worker/session/step_machine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rows/row_ranges.h"

namespace muster {
namespace {

// How often a refused worker asks for a step without news.
constexpr absl::Duration kAskAgain = absl::Seconds(1);

absl::Status BadGrant(absl::string_view what) {
  return absl::InternalError(absl::StrCat(
      "ps task 0 granted a step ", what,
      "; wanted the rows to train on: start it anew from the same build of "
      "Muster as this task"));
}

}  // namespace

absl::Status CheckGrant(const StepReply& reply) {
  if (!reply.granted()) return absl::OkStatus();
  if (reply.leases().empty()) return BadGrant("without a lease of rows");
  for (const RowLease& lease : reply.leases()) {
    const absl::Status rows = CheckRows(lease);
    if (!rows.ok()) return BadGrant(absl::StrCat("with ", rows.message()));
    if (lease.ranges().empty()) return BadGrant("with a lease of no rows");
  }
  return absl::OkStatus();
}

bool StepMachine::IsLastEpoch(
    int64_t model_epoch, const std::vector<uint64_t>& ps_incarnations) const {
  return last_epoch_ == model_epoch && last_incarnations_ == ps_incarnations;
}

int64_t StepMachine::Restore(int64_t kept, uint64_t first_ps_incarnation) {
  const bool is_another =
      last_epoch_ != 0 && last_incarnations_[0] != first_ps_incarnation;
  const int64_t lost = is_another ? acknowledged_ - kept : 0;
  acknowledged_ = kept;
  undecided_step_ = 0;
  report_ = {};
  unfinished_why_.clear();
  return std::max<int64_t>(lost, 0);
}

void StepMachine::Enter(int64_t model_epoch,
                        std::vector<uint64_t> ps_incarnations) {
  epoch_ = last_epoch_ = model_epoch;
  last_incarnations_ = std::move(ps_incarnations);
  granted_ = false;
  refused_at_version_ = asked_version_ = -1;
}

void StepMachine::Leave() {
  epoch_ = 0;
  granted_ = false;
}

SendStep StepMachine::Ask(int64_t state_version, absl::string_view stop_reason,
                          bool may_wait, absl::Time now) {
  asked_at_ = now;
  asked_version_ = std::max(asked_version_, state_version);
  const bool waits = may_wait && stop_reason.empty() && !report_.abandoned;
  return SendStep{epoch_, last_incarnations_[0], report_,
                  std::string(stop_reason),
                  waits ? longest_wait_ : absl::ZeroDuration()};
}

StepMachine::Answer StepMachine::OnAnswer(const StepReply& reply,
                                          absl::Time now) {
  knows_stop_ = reply.phase() == STOPPING;
  const bool gave_up = report_.abandoned;
  CountAcknowledged(reply);
  report_ = {};
  granted_ = reply.granted() && reply.model_epoch() == epoch_ &&
             !reply.too_few_replicas();
  if (reply.too_few_replicas()) return Answer::kTooFewReplicas;
  if (granted_) {
    grant_.token = reply.token();
    grant_.leases.assign(reply.leases().begin(), reply.leases().end());
    grant_.pass = reply.pass();
    return Answer::kGranted;
  }
  if (gave_up) return Answer::kReturned;
  OnRefused(reply, now);
  return Answer::kRefused;
}

// In synchronous replication only the next step's token says whether a step is
// in the model.
void StepMachine::CountAcknowledged(const StepReply& reply) {
  if (reply.model_epoch() != last_epoch_) return;
  if (!report_.abandoned && !report_.late && report_.step != 0) {
    undecided_step_ = report_.step;
  }
  const bool has_rounds = grant_.token.round() != 0;
  if (undecided_step_ == 0 || (has_rounds && !reply.granted())) return;
  if (!has_rounds || reply.token().chosen_step() >= undecided_step_) {
    ++acknowledged_;
  }
  undecided_step_ = 0;
}

void StepMachine::OnRefused(const StepReply& reply, absl::Time now) {
  refused_at_version_ = reply.state_version();
  // An answer that has waited is followed by the next question at once: while
  // nobody asks, a round that closes grants this worker nothing. One that has
  // not is, if there is news; else asking would go round and round.
  const bool waited = longest_wait_ > absl::ZeroDuration() &&
                      (now - asked_at_ >= longest_wait_ / 2 ||
                       reply.state_version() > asked_version_);
  asked_version_ = std::max(asked_version_, reply.state_version());
  ask_again_at_ = waited ? now : now + kAskAgain;
}

void StepMachine::OnTaken(const StepReport& report) {
  granted_ = false;
  unfinished_why_.clear();
  report_ = report;
  report_.step = begun_;
}

std::string StepMachine::DescribeUncounted() const {
  // A step that is not reported is in no round.
  if (grant_.token.round() != 0) return "";
  const std::string step = absl::StrCat("step ", begun_, " of this task ");
  if (is_unfinished()) {
    return absl::StrCat(step, "is not counted, and may be in the parameters: ",
                        unfinished_why_);
  }
  if (report_.step == 0 || report_.abandoned) return "";
  return absl::StrCat(
      step,
      "may not be counted, and may be in the parameters: its report "
      "got no answer");
}

void StepMachine::OnUnfinished(std::string why) {
  granted_ = false;
  unfinished_why_ = std::move(why);
}

void StepMachine::OnGivenUp() {
  granted_ = false;
  unfinished_why_.clear();
  report_ = {};
  report_.step = begun_;
  report_.abandoned = true;
}

}  // namespace muster
