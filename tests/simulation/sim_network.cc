#include "tests/simulation/sim_network.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

// A slow message takes so many times as long, on average.
constexpr double kSlowFactor = 30;
constexpr double kLossIsSeen = 0.7;
// The part of the repeats that come when their senders may be long dead.
constexpr double kVeryLate = 0.5;
constexpr absl::Duration kLatest = absl::Seconds(4);
// How many starts of the chief a copy of a former one's message meets, where
// messages come twice, and when: registering, reading a checkpoint and loading
// it takes about so many messages one after another.
constexpr double kFromTheGrave = 0.3;
constexpr double kMessagesOfARestore = 10;

}  // namespace

SimNetwork::Fate SimNetwork::Draw() {
  Fate fate;
  if (healed_) return fate;
  const bool lost = random_.Happens(scenario_.lose);
  const bool request = random_.Happens(0.5);
  fate.request_lost = lost && request;
  fate.reply_lost = lost && !request;
  fate.loss_is_seen = random_.Happens(kLossIsSeen);
  fate.duplicated = random_.Happens(scenario_.duplicate);
  return fate;
}

absl::Time SimNetwork::Arrival(Endpoint from, Endpoint to) {
  absl::Duration pause = scenario_.latency * (0.5 + random_.Fraction());
  if (!healed_ && random_.Happens(scenario_.slow)) {
    pause += random_.About(scenario_.latency * kSlowFactor);
  }
  return std::max(simulator_->Now() + pause, ClearAt(from, to) + pause);
}

absl::Time SimNetwork::SecondArrival(Endpoint from, Endpoint to) {
  const absl::Time soon = Arrival(from, to);
  if (healed_ || !random_.Happens(kVeryLate)) return soon;
  return soon + kLatest * random_.Fraction();
}

absl::Time SimNetwork::ClearAt(Endpoint from, Endpoint to) const {
  absl::Time clear = absl::InfinitePast();
  if (healed_) return clear;
  const auto pair = clogged_.find(std::minmax(from, to));
  if (pair != clogged_.end()) clear = std::max(clear, pair->second);
  for (const Endpoint end : {from, to}) {
    const auto all = all_clogged_.find(end);
    if (all != all_clogged_.end()) clear = std::max(clear, all->second);
  }
  return clear;
}

void SimNetwork::KeepCopy(const std::string& space,
                          std::function<void()> deliver) {
  copies_[space] = std::move(deliver);
}

void SimNetwork::OnChiefRegistered(const std::string& space) {
  const std::function<void()> deliver = std::exchange(copies_[space], nullptr);
  if (deliver == nullptr || healed_ || scenario_.duplicate == 0) return;
  if (!random_.Happens(kFromTheGrave)) return;
  simulator_->RunAfter(
      scenario_.latency * kMessagesOfARestore * random_.Fraction(),
      [this, deliver] { WhenAwake(0, deliver); });
}

void SimNetwork::OnRegistered(const Sender& sender,
                              std::function<void()> again) {
  Registration& newest =
      registrations_[{sender.namespace_(), sender.task().index()}];
  if (newest.incarnation == sender.incarnation()) return;
  const Registration before = std::exchange(
      newest, Registration{sender.incarnation(), std::move(again)});
  if (before.again == nullptr || healed_ || scenario_.duplicate == 0) return;
  if (!random_.Happens(kFromTheGrave)) return;
  simulator_->RunAfter(
      scenario_.latency * kMessagesOfARestore * random_.Fraction(),
      [this, again = before.again] { WhenAwake(0, again); });
}

void SimNetwork::WhenAwake(int task, const std::function<void()>& function) {
  if (processes_[task] == nullptr) return function();
  processes_[task]->RunAwake(function);
}

void SimNetwork::Clog(Endpoint a, Endpoint b, absl::Time until) {
  clogged_[std::minmax(a, b)] = until;
}

void SimNetwork::ClogAll(Endpoint a, absl::Time until) {
  all_clogged_[a] = until;
}

}  // namespace muster
