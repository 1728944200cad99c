#ifndef PS_SERVER_COORDINATOR_JOB_EVALUATIONS_H_
#define PS_SERVER_COORDINATOR_JOB_EVALUATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/evaluation_history.pb.h"

namespace muster {

// The evaluations of a job as its chief has reported them, and the factor of
// the learning rate that follows from them. Not thread-safe.
class JobEvaluations {
 public:
  // `what` begins the message. Errors: InvalidArgument for counts that are
  // none, a factor that is not from 0 to 1, a name that is too long.
  static absl::Status Check(absl::string_view what,
                            const EvaluationHistory& history);

  // The committed model's, in the place of all others.
  void Restore(const EvaluationHistory& history);
  // The chief's, unless its evaluation is earlier than the one that is held.
  // The same one may be told again, when its model is saved.
  void Adopt(const EvaluationHistory& history);

  const EvaluationHistory& history() const { return history_; }

  // The factor of the learning rate of an update.
  double FactorOf(int64_t update) const;
  // The same of a round: what it was when first asked for, whatever the chief
  // has reported since, so that all workers of a round have one.
  double FactorOfRound(int64_t round);

 private:
  EvaluationHistory history_;
  // The newest round that was asked for.
  int64_t round_ = 0;
  double round_factor_ = 1;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_JOB_EVALUATIONS_H_
