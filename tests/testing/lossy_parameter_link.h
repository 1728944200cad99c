#ifndef TESTS_TESTING_LOSSY_PARAMETER_LINK_H_
#define TESTS_TESTING_LOSSY_PARAMETER_LINK_H_

#include <cstdint>
#include <memory>
#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/parameter_link.h"
#include "tests/testing/forwarding_parameter_link.h"

namespace muster {

// A link that loses some pushes and some of their answers, and delivers some
// pushes twice, as a network and its retries do. The caller of a lost one gets
// Unavailable. Other calls pass untouched. The same seed loses the same
// pushes if they come in the same order. Thread-safe.
class LossyParameterLink : public ForwardingParameterLink {
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
      : ForwardingParameterLink(link),
        options_(options),
        random_(options.seed) {}

  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    if (Happens(options_.lose_request)) {
      return done(absl::UnavailableError("the request was lost"));
    }
    if (Happens(options_.repeat)) {
      ForwardingParameterLink::PushTo(nullptr, request, deadline,
                                      [](absl::StatusOr<Frame<PushReply>>) {});
    }
    if (!Happens(options_.lose_reply)) {
      return ForwardingParameterLink::PushTo(
          std::move(place), std::move(request), deadline, std::move(done));
    }
    ForwardingParameterLink::PushTo(
        std::move(place), std::move(request), deadline,
        [done = std::move(done)](absl::StatusOr<Frame<PushReply>>) {
          done(absl::UnavailableError("the reply was lost"));
        });
  }

 private:
  bool Happens(double probability) {
    absl::MutexLock lock(&mu_);
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  const Options options_;
  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_LOSSY_PARAMETER_LINK_H_
