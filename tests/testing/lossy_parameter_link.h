#ifndef TESTS_TESTING_LOSSY_PARAMETER_LINK_H_
#define TESTS_TESTING_LOSSY_PARAMETER_LINK_H_

#include <cstdint>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/parameter_link.h"

namespace muster {

// A link that loses some pushes and some of their answers, and delivers some
// pushes twice, as a network and its retries do. The caller of a lost one gets
// Unavailable. Other calls pass untouched. The same seed loses the same
// pushes if they come in the same order. Thread-safe.
class LossyParameterLink : public ParameterLink {
 public:
  struct Options {
    uint64_t seed = 1;
    // Probabilities for each push.
    double lose_request = 0;
    double lose_reply = 0;
    double repeat = 0;
  };

  // `link` outlives this.
  LossyParameterLink(ParameterLink* link, const Options& options)
      : link_(link), options_(options), random_(options.seed) {}

  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override {
    if (Happens(options_.lose_request)) {
      return done(absl::UnavailableError("the request was lost"));
    }
    if (Happens(options_.repeat)) {
      link_->Push(request, deadline, [](absl::StatusOr<Frame<PushReply>>) {});
    }
    if (!Happens(options_.lose_reply)) {
      return link_->Push(std::move(request), deadline, std::move(done));
    }
    link_->Push(std::move(request), deadline,
                [done = std::move(done)](absl::StatusOr<Frame<PushReply>>) {
                  done(absl::UnavailableError("the reply was lost"));
                });
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
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override {
    link_->Pull(request, deadline, std::move(done));
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
  bool Happens(double probability) {
    absl::MutexLock lock(&mu_);
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  ParameterLink* const link_;
  const Options options_;
  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_LOSSY_PARAMETER_LINK_H_
