#ifndef PS_SERVER_COORDINATOR_ADMISSION_H_
#define PS_SERVER_COORDINATOR_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/listed_tasks.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/members.h"

namespace muster {

// The rules of who may register and as what: the tasks of the cluster, one
// process a task, one training a job, of which workers of other kinds (layers,
// a program) have but the shared part alike. Not thread-safe.
class Admission {
 public:
  // `max_unlisted`: the tasks that may come besides those of the cluster.
  Admission(const ClusterDef& cluster, size_t max_unlisted)
      : listed_(cluster), max_unlisted_(max_unlisted) {}

  // Does the cluster make the sender the chief?
  bool IsChief(const RegisterRequest& request) const;

  // Errors: FailedPrecondition for another protocol version.
  static absl::Status CheckProtocol(absl::string_view what,
                                    int32_t protocol_version);
  // Whether a worker may ask for its index. Errors: FailedPrecondition for
  // another protocol version, or if `cluster` lists its workers;
  // InvalidArgument without an incarnation.
  static absl::Status CheckAsksForTask(const AssignTaskRequest& request,
                                       const ClusterDef& cluster);
  // Errors: those of Coordinator::Register, but for the training; also "fenced:
  // " for a start that AssignTask has numbered, if another one has its index.
  absl::Status Check(const RegisterRequest& request, Members& members) const;
  // Errors: InvalidArgument with the first difference, unless the training is
  // the job's or may replace it. `end` tells of a job that is done, whose
  // training nothing replaces; "" before.
  absl::Status CheckTraining(const RegisterRequest& request,
                             const Members& members,
                             const std::string& end) const;
  // The first difference to the job's training; "" for none, or without one.
  std::string DifferenceTo(const RegisterRequest& request) const;
  // The number that the request has to confirm; 0: none, or it does.
  static uint64_t WantedTakeover(const RegisterRequest& request,
                                 const Members& members);

  // Makes the training the job's if it is the chief's, or the first. Returns
  // whether it is another one, which nobody but the sender has.
  bool AdoptTraining(const RegisterRequest& request);

 private:
  bool HasRoomFor(const TaskKey& key, const Members& members) const;
  bool MayBringTraining(const RegisterRequest& request,
                        const Members& members) const;

  const ListedTasks listed_;
  const size_t max_unlisted_;

  // What one worker's training is.
  struct Training {
    TaskKey owner;
    uint64_t fingerprint = 0;
    std::string text;
    bool is_chiefs = false;
  };
  // A training that a new one has to be like, and the first difference between
  // them; "" for none.
  struct Comparison {
    TaskKey owner;
    std::string difference;
    bool is_of_kind = true;
  };

  // With that of the request's kind, or else with what all kinds have alike.
  Comparison Compare(const RegisterRequest& request) const;
  bool IsTrainingChiefs() const;

  // One of each kind of worker that has come, with one shared part. Those who
  // say no kind are one, too.
  std::map<std::string, Training> trainings_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_ADMISSION_H_
