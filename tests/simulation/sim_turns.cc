#include "tests/simulation/sim_turns.h"

#include <utility>

namespace muster {
namespace {

// Enough for one to ask while the other one is in a turn.
constexpr int kAskers = 2;
// The share of the turns that take time, before and after what they do.
constexpr double kPauses = 0.2;
// The share of the answers whose receivers ask again before the turn ends.
constexpr double kAsksInTurn = 0.5;

absl::Status Ending() { return absl::UnavailableError("this ps is ending"); }

}  // namespace

SimTurns::SimTurns(const Options& options)
    : options_(options),
      has_askers_(true),
      random_(options.seed),
      strand_(options.process) {
  for (int i = 0; i < kAskers; ++i) {
    threads_.push_back(options_.process->StartThread([this] { RunAsker(); }));
  }
}

SimTurns::SimTurns(const Options& options, const Strand::Idle& idle)
    : options_(options),
      has_askers_(false),
      random_(options.seed),
      strand_(options.process, [this, idle] { return Advance(idle); }) {}

void SimTurns::Ask(absl::Time deadline, Turn turn, Refusal refuse) {
  if (dead_) return;
  if (closed_) return refuse(Ending());
  Asked asked{deadline, std::move(turn), std::move(refuse)};
  if (!has_askers_) return Post(std::move(asked));
  arrived_.push_back(std::move(asked));
}

void SimTurns::Close() {
  closing_ = true;
  strand_.Close();
  closed_ = true;
  if (dead_) return;
  if (in_turn_ || begun_ != taken_) {
    options_.fail("a strand closes before what it took is carried out");
  }
  if (strand_.Post([] {})) options_.fail("a strand that has closed takes more");
}

void SimTurns::Die() {
  if (std::exchange(dead_, true)) return;
  arrived_.clear();
  // A thread of its own goes to its end.
  if (!has_askers_) {
    threads_.push_back(
        options_.process->StartThread([this] { strand_.Close(); }));
  }
}

// ---- Threads ------------------------------------------------------------

void SimTurns::RunAsker() {
  const auto has_news = [this] {
    return dead_ || closing_ || !arrived_.empty();
  };
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      options_.process->Await(&mu_, absl::Condition(&has_news),
                              absl::InfiniteDuration());
    }
    if (arrived_.empty() && (dead_ || closing_)) return;
    PostFirst();
  }
}

void SimTurns::PostFirst() {
  if (arrived_.empty()) return;
  Asked first = std::move(arrived_.front());
  arrived_.pop_front();
  Post(std::move(first));
}

void SimTurns::Post(Asked asked) {
  const int64_t number = next_number_++;
  const Refusal refuse = asked.refuse;
  Turn run = [this, number, asked = std::move(asked)] { Run(number, asked); };
  ++taken_;
  if (options_.bug == Bug::kTurnsAtOnce && has_askers_) return run();
  if (options_.bug == Bug::kLaterTurnFirst) {
    posted_.push_back(std::move(run));
    run = [this] {
      const Turn last = std::move(posted_.back());
      posted_.pop_back();
      last();
    };
  }
  if (strand_.Post(std::move(run))) return;
  --taken_;
  refuse(Ending());
}

absl::Duration SimTurns::Advance(const Strand::Idle& idle) const {
  return dead_ ? absl::InfiniteDuration() : idle();
}

// ---- A turn ---------------------------------------------------------------

void SimTurns::Run(int64_t number, const Asked& asked) {
  if (dead_) return;
  if (options_.bug == Bug::kTurnLostAtClose && closing_) return;
  Judge(number);
  in_turn_ = true;
  if (options_.process->Now() < asked.deadline) {
    Take(asked.turn);
  } else {
    asked.refuse(absl::DeadlineExceededError("the deadline passed before"));
  }
  in_turn_ = false;
}

void SimTurns::Take(const Turn& turn) {
  Pause();
  if (!dead_) turn();
  if (random_.Happens(kAsksInTurn)) PostFirst();
  Pause();
}

void SimTurns::Judge(int64_t number) {
  ++begun_;
  if (in_turn_) options_.fail("two turns of a strand at once");
  if (closed_) options_.fail("a turn of a strand that has closed");
  if (number <= last_number_) {
    options_.fail("a turn of a strand after one that was asked for later");
  }
  last_number_ = number;
}

void SimTurns::Pause() {
  if (!random_.Happens(kPauses)) return;
  options_.process->Sleep(options_.longest_pause * random_.Fraction());
}

}  // namespace muster
