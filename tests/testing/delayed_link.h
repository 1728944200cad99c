#ifndef TESTS_TESTING_DELAYED_LINK_H_
#define TESTS_TESTING_DELAYED_LINK_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/parameter_link.h"
#include "tests/testing/copied_frame.h"
#include "tests/testing/forwarding_parameter_link.h"

namespace muster {

// A link whose pulls and pushes are carried out at once, but answered only when
// the test says so: a slow network without a clock. Other calls pass untouched.
// Thread-safe.
class DelayedLink : public ForwardingParameterLink {
 public:
  explicit DelayedLink(std::unique_ptr<ParameterLink> link)
      : ForwardingParameterLink(link.get()), link_(std::move(link)) {}
  // Nobody waits for what is still held.
  ~DelayedLink() override {
    HoldPulls(false);
    HoldPushes(false);
  }

  // From now on they wait; or not any more, those that do neither.
  void HoldPulls(bool hold) { pulls_.Hold(hold); }
  void HoldPushes(bool hold) { pushes_.Hold(hold); }
  // Answers that wait.
  size_t held_pulls() const { return pulls_.size(); }
  size_t held_pushes() const { return pushes_.size(); }
  // Delivers the oldest that waits. REQUIRES: there is one.
  void ReleasePull() { pulls_.Release(); }

  void PullTo(std::shared_ptr<ValuePlace> place, const PullRequest& request,
              absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) override {
    ForwardingParameterLink::PullTo(std::move(place), request, deadline,
                                    pulls_.Wrap(std::move(done)));
  }
  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    ForwardingParameterLink::PushTo(std::move(place), std::move(request),
                                    deadline, pushes_.Wrap(std::move(done)));
  }

 private:
  // The answers of one kind of call. Thread-safe.
  class Answers {
   public:
    template <typename Reply>
    ReplyCallback<Reply> Wrap(ReplyCallback<Reply> done) {
      return [this, done = std::move(done)](absl::StatusOr<Reply> reply) {
        Deliver([done, reply = Copied(std::move(reply))] { done(reply); });
      };
    }
    void Hold(bool hold) {
      std::deque<std::function<void()>> released;
      {
        absl::MutexLock lock(&mu_);
        hold_ = hold;
        if (!hold) released.swap(held_);
      }
      for (const auto& answer : released) answer();
    }
    void Release() {
      std::function<void()> answer;
      {
        absl::MutexLock lock(&mu_);
        answer = std::move(held_.front());
        held_.pop_front();
      }
      answer();
    }
    size_t size() const {
      absl::MutexLock lock(&mu_);
      return held_.size();
    }

   private:
    void Deliver(std::function<void()> answer) {
      {
        absl::MutexLock lock(&mu_);
        if (hold_) return held_.push_back(std::move(answer));
      }
      answer();
    }

    mutable absl::Mutex mu_;
    bool hold_ ABSL_GUARDED_BY(mu_) = false;
    std::deque<std::function<void()>> held_ ABSL_GUARDED_BY(mu_);
  };

  const std::unique_ptr<ParameterLink> link_;
  Answers pulls_;
  Answers pushes_;
};

}  // namespace muster

#endif  // TESTS_TESTING_DELAYED_LINK_H_
