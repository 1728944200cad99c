#include "tests/simulation/simulator.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster {
namespace {

// Far more than anything takes; a busy loop takes infinitely many.
constexpr int kMostStepsAtOneTime = 10000;

}  // namespace

struct Simulator::Thread {
  explicit Thread(std::function<void()> body) : fiber(std::move(body)) {}

  bool IsReady() const { return condition == nullptr || condition->Eval(); }

  Fiber fiber;
  // The condition that it waits for; null if it does not.
  const absl::Condition* condition = nullptr;
  absl::Time until = absl::InfiniteFuture();
};

// Joins at destruction.
class Simulator::Handle : public ClockThread {
 public:
  Handle(const Simulator* simulator, std::shared_ptr<Thread> thread)
      : simulator_(simulator), thread_(std::move(thread)) {}
  ~Handle() override {
    absl::Mutex mu;
    absl::MutexLock lock(&mu);
    const auto ended = [this] { return thread_->fiber.done(); };
    simulator_->Await(&mu, absl::Condition(&ended), absl::InfiniteDuration());
  }

 private:
  const Simulator* const simulator_;
  const std::shared_ptr<Thread> thread_;
};

Simulator::Simulator(bool verbose) : verbose_(verbose) {}

Simulator::~Simulator() {
  events_.clear();
  assert(std::all_of(threads_.begin(), threads_.end(),
                     [](const auto& thread) { return thread->fiber.done(); }));
}

bool Simulator::Await(absl::Mutex* mu, const absl::Condition& condition,
                      absl::Duration timeout) const {
  if (condition.Eval()) return true;
  // Only threads of the simulation wait; the functions of RunAt must not.
  assert(current_ != nullptr);
  Thread* const self = current_;
  self->condition = &condition;
  self->until = now_ + timeout;
  mu->Unlock();
  self->fiber.Yield();
  mu->Lock();
  self->condition = nullptr;
  return condition.Eval();
}

std::unique_ptr<ClockThread> Simulator::StartThread(
    std::function<void()> body) const {
  threads_.push_back(std::make_shared<Thread>(std::move(body)));
  return std::make_unique<Handle>(this, threads_.back());
}

void Simulator::RunAt(absl::Time time, std::function<void()> function) {
  events_.emplace(std::make_pair(std::max(time, now_), next_event_++),
                  std::move(function));
}

void Simulator::Sleep(absl::Duration pause) const {
  absl::Mutex mu;
  absl::MutexLock lock(&mu);
  const bool never = false;
  Await(&mu, absl::Condition(&never), pause);
}

bool Simulator::RunReadyThreads() const {
  bool any = false;
  // A thread may start others meanwhile.
  for (size_t i = 0; i < threads_.size(); ++i) {
    const Thread& waiting = *threads_[i];
    if (waiting.fiber.done()) continue;
    if (!waiting.IsReady() && waiting.until > now_) continue;
    any = true;
    const std::shared_ptr<Thread> thread = threads_[i];
    current_ = thread.get();
    thread->fiber.Resume();
    current_ = nullptr;
  }
  threads_.erase(
      std::remove_if(threads_.begin(), threads_.end(),
                     [](const auto& thread) { return thread->fiber.done(); }),
      threads_.end());
  return any;
}

bool Simulator::Advance(absl::Time until) {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& thread : threads_) next = std::min(next, thread->until);
  const bool is_event =
      !events_.empty() && events_.begin()->first.first <= next;
  if (is_event) next = events_.begin()->first.first;
  if (next > until || next == absl::InfiniteFuture()) return false;
  now_ = std::max(now_, next);
  if (!is_event) return true;  // its thread is ready now
  const std::function<void()> function = std::move(events_.begin()->second);
  events_.erase(events_.begin());
  function();
  return true;
}

bool Simulator::StepOnce(absl::Time until) {
  return RunReadyThreads() || Advance(until);
}

bool Simulator::RunUntil(const std::function<bool()>& done, absl::Time until) {
  absl::Time last = now_;
  int steps = 0;
  while (!done()) {
    if (!StepOnce(until) || ++steps > kMostStepsAtOneTime) return false;
    if (now_ != last) steps = 0;
    last = now_;
  }
  return true;
}

void Simulator::Note(absl::string_view what, int64_t a, int64_t b, int64_t c,
                     int64_t d) {
  const int64_t numbers[] = {absl::ToInt64Nanoseconds(elapsed()), a, b, c, d};
  history_.Add(what);
  history_.Add({reinterpret_cast<const char*>(numbers), sizeof(numbers)});
  if (!verbose_) return;
  absl::FPrintF(stderr, "%12.6f %s %d %d %d %d\n",
                absl::ToDoubleSeconds(elapsed()), what, a, b, c, d);
}

void Simulator::NoteText(absl::string_view who, absl::string_view text) {
  if (!verbose_) return;
  absl::FPrintF(stderr, "%12.6f %s: %s\n", absl::ToDoubleSeconds(elapsed()),
                who, text);
}

}  // namespace muster
