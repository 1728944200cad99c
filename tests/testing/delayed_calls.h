#ifndef TESTS_TESTING_DELAYED_CALLS_H_
#define TESTS_TESTING_DELAYED_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"
#include "ps_server/service/data_call.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// A ps task that keeps pushes until a test answers them, in the order that the
// test likes, and answers a pull at once with as many bytes as its first slice
// asks for. It has nothing else. Thread-safe.
class DelayedCalls : public DataLink {
 public:
  // Returns when at least `count` pushes are held.
  void AwaitHeld(int count) {
    absl::MutexLock lock(&mu_);
    awaited_ = static_cast<size_t>(count);
    mu_.Await(absl::Condition(this, &DelayedCalls::HasAwaited));
  }
  // Answers the push of this step, which is held.
  void Answer(int64_t step) {
    Held held;
    {
      absl::MutexLock lock(&mu_);
      held = std::move(held_.at(step));
      held_.erase(step);
    }
    Frame<PushReply> reply;
    reply.header.set_staleness(step);
    held.done(std::move(reply));
  }
  // Answers whatever is held, the newest first.
  void AnswerAll() {
    std::map<int64_t, Held> all;
    {
      absl::MutexLock lock(&mu_);
      all.swap(held_);
    }
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      Frame<PushReply> reply;
      reply.header.set_staleness(it->first);
      it->second.done(std::move(reply));
    }
  }
  absl::Time deadline_of(int64_t step) const {
    absl::MutexLock lock(&mu_);
    return held_.at(step).deadline;
  }
  // The most that were held at once.
  size_t most_held() const {
    absl::MutexLock lock(&mu_);
    return most_held_;
  }

  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override {
    absl::MutexLock lock(&mu_);
    held_[request.header.step()] = {deadline, std::move(done)};
    most_held_ = std::max(most_held_, held_.size());
  }
  void Pull(const PullRequest& request, absl::Time,
            ReplyCallback<Frame<PullReply>> done) override {
    Frame<PullReply> reply;
    reply.data = absl::Cord(std::string(request.slices(0).length(), 'v'));
    done(std::move(reply));
  }

  void PushInto(Frame<PushPart> request, PushContext, absl::Time deadline,
                ReplyCallback<Frame<PushReply>> done) override {
    Push(std::move(request), deadline, std::move(done));
  }
  void PullInto(const PullRequest& request, ValueMemory, absl::Time deadline,
                ReplyCallback<Frame<PullReply>> done) override {
    Pull(request, deadline, std::move(done));
  }

  void CallBytes(const AnyMethod&, std::string, absl::Time,
                 ReplyCallback<std::string> done) override {
    done(None());
  }
  void Load(Frame<LoadPart>, absl::Time,
            ReplyCallback<LoadReply> done) override {
    done(None());
  }
  void ReadSnapshot(const ReadSnapshotRequest&, absl::Time,
                    ReplyCallback<Frame<SnapshotPart>> done) override {
    done(None());
  }

 private:
  struct Held {
    absl::Time deadline;
    ReplyCallback<Frame<PushReply>> done;
  };

  static absl::Status None() { return absl::UnimplementedError("held calls"); }
  bool HasAwaited() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return held_.size() >= awaited_;
  }

  mutable absl::Mutex mu_;
  std::map<int64_t, Held> held_ ABSL_GUARDED_BY(mu_);
  size_t most_held_ ABSL_GUARDED_BY(mu_) = 0;
  size_t awaited_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster

#endif  // TESTS_TESTING_DELAYED_CALLS_H_
