#ifndef PS_SERVER_COORDINATOR_TASK_GUARD_H_
#define PS_SERVER_COORDINATOR_TASK_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/admission.h"
#include "ps_server/coordinator/job_record.h"

namespace muster {

// The starts of tasks that would replace another one, and since when the other
// is asked whether it is alive. A question is a version of the job's state: who
// lives sees it, and watches from there on. What a dead process has left on the
// way is older. Bounded: the oldest are forgotten, and asked again. Not
// thread-safe; no clock.
class TakeoverQuestions {
 public:
  static constexpr size_t kMost = 64;
  // A watch that waits is answered at once, so that this is many round trips.
  static constexpr absl::Duration kAnswerTime = absl::Seconds(3);

  // By how much the version rises with the question of this start: by so much
  // that a watch from a version of another start of ps task 0, which counts its
  // own, is not taken for an answer.
  static int64_t VersionsOf(uint64_t asker) {
    constexpr uint64_t kMostVersions = uint64_t{1} << 20;
    return 1 + static_cast<int64_t>(asker % kMostVersions);
  }

  struct Question {
    uint64_t asker = 0;
    int64_t version = 0;
    absl::Time since;
  };

  // Null if this start has none.
  const Question* Find(uint64_t asker) const {
    for (const Question& question : questions_) {
      if (question.asker == asker) return &question;
    }
    return nullptr;
  }

  void Ask(const Question& question) {
    questions_.push_back(question);
    if (questions_.size() > kMost) questions_.pop_front();
  }

 private:
  std::deque<Question> questions_;
};

// The guard of tasks that are there and alive
// (CoordinatorOptions.guards_tasks): another start of one is refused, or waits
// until that is known. Not thread-safe.
class TaskGuard {
 public:
  // Both outlive it.
  TaskGuard(JobRecord& job, const Admission& admission)
      : job_(job), admission_(admission) {}

  // Errors: InvalidArgument if another start of the sender's task is there, and
  // alive or with another training; Unavailable until that is known.
  absl::Status Check(const RegisterRequest& request, absl::Time now);

 private:
  absl::Status CheckReplaceable(const CoordinatorWorker& holder, uint64_t asker,
                                absl::Time now);

  JobRecord& job_;
  const Admission& admission_;
  TakeoverQuestions questions_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_TASK_GUARD_H_
