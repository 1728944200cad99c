#ifndef TESTS_TESTING_HELD_PARAMETER_LINK_H_
#define TESTS_TESTING_HELD_PARAMETER_LINK_H_

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

namespace muster {

// A link whose pulls and pushes are carried out at once, but answered only when
// the test says so: a slow network without a clock. Other calls pass untouched.
// Thread-safe.
class HeldParameterLink : public ParameterLink {
 public:
  explicit HeldParameterLink(std::unique_ptr<ParameterLink> link)
      : link_(std::move(link)) {}
  // Nobody waits for what is still held.
  ~HeldParameterLink() override {
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

  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override {
    link_->Pull(request, deadline, pulls_.Wrap(std::move(done)));
  }
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override {
    link_->Push(std::move(request), deadline, pushes_.Wrap(std::move(done)));
  }

  absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& fence, int64_t size_bytes) override {
    return link_->MapParameters(fence, size_bytes);
  }
  void Hello(const HelloRequest& request, absl::Time deadline,
             ReplyCallback<HelloReply> done) override {
    link_->Hello(request, deadline, std::move(done));
  }
  void Define(const DefineRequest& request, absl::Time deadline,
              ReplyCallback<DefineReply> done) override {
    link_->Define(request, deadline, std::move(done));
  }
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override {
    link_->Load(std::move(request), deadline, std::move(done));
  }
  void Seal(const SealRequest& request, absl::Time deadline,
            ReplyCallback<SealReply> done) override {
    link_->Seal(request, deadline, std::move(done));
  }
  void BeginSnapshot(const BeginSnapshotRequest& request, absl::Time deadline,
                     ReplyCallback<BeginSnapshotReply> done) override {
    link_->BeginSnapshot(request, deadline, std::move(done));
  }
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override {
    link_->ReadSnapshot(request, deadline, std::move(done));
  }
  void EndSnapshot(const EndSnapshotRequest& request, absl::Time deadline,
                   ReplyCallback<EndSnapshotReply> done) override {
    link_->EndSnapshot(request, deadline, std::move(done));
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

#endif  // TESTS_TESTING_HELD_PARAMETER_LINK_H_
