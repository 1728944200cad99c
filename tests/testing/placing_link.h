#ifndef TESTS_TESTING_PLACING_LINK_H_
#define TESTS_TESTING_PLACING_LINK_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/parameter_link.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/placed_answer.h"

namespace muster {

// A link that receives values into the caller's memory in many writes, as one
// over a socket does, with the answers of another link. A test may write them
// itself, break them in the middle, and go on afterwards. Thread-safe.
class PlacingLink : public ForwardingParameterLink {
 public:
  explicit PlacingLink(std::unique_ptr<ParameterLink> link)
      : ForwardingParameterLink(link.get()), link_(std::move(link)) {}

  // From now on answers wait until the test has them; or not any more.
  void HoldAnswers(bool hold) {
    absl::MutexLock lock(&mu_);
    hold_ = hold;
  }
  // The oldest that waits; null: none does.
  std::shared_ptr<PlacedAnswer> NextHeld() {
    absl::MutexLock lock(&mu_);
    if (held_.empty()) return nullptr;
    auto answer = std::move(held_.front());
    held_.pop_front();
    return answer;
  }
  // So many of the next answers break in the middle.
  void BreakAnswers(int count) {
    absl::MutexLock lock(&mu_);
    to_break_ = count;
  }
  // Answers whose values were, and were not, written to their place.
  int placed() const {
    absl::MutexLock lock(&mu_);
    return placed_;
  }
  int framed() const {
    absl::MutexLock lock(&mu_);
    return framed_;
  }

  void PullTo(std::shared_ptr<ValuePlace> place, const PullRequest& request,
              absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) override {
    ForwardingParameterLink::PullTo(
        nullptr, request, deadline,
        Receive<PullReply>(std::move(place), std::move(done)));
  }
  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    ForwardingParameterLink::PushTo(
        nullptr, std::move(request), deadline,
        Receive<PushReply>(std::move(place), std::move(done)));
  }

 private:
  static constexpr size_t kWriteBytes = 10'000;

  template <typename Header>
  ReplyCallback<Frame<Header>> Receive(std::shared_ptr<ValuePlace> place,
                                       ReplyCallback<Frame<Header>> done) {
    if (place == nullptr) return done;
    return [this, place = std::move(place),
            done = std::move(done)](absl::StatusOr<Frame<Header>> reply) {
      if (!reply.ok()) return done(reply.status());
      Deliver(std::make_shared<PlacedAnswer>(place, *std::move(reply), done));
    };
  }
  void Deliver(std::shared_ptr<PlacedAnswer> answer) {
    bool breaks = false;
    {
      absl::MutexLock lock(&mu_);
      ++(answer->is_placed() ? placed_ : framed_);
      if (hold_) return held_.push_back(std::move(answer));
      breaks = answer->is_placed() && to_break_ > 0;
      if (breaks) --to_break_;
    }
    const size_t end = breaks ? answer->size() / 2 : answer->size();
    while (answer->written() < end && answer->Write(kWriteBytes)) {
    }
    if (breaks) return answer->Fail(absl::UnavailableError("broken"));
    answer->Finish();
  }

  const std::unique_ptr<ParameterLink> link_;
  mutable absl::Mutex mu_;
  bool hold_ ABSL_GUARDED_BY(mu_) = false;
  int to_break_ ABSL_GUARDED_BY(mu_) = 0;
  int placed_ ABSL_GUARDED_BY(mu_) = 0;
  int framed_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<std::shared_ptr<PlacedAnswer>> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_PLACING_LINK_H_
