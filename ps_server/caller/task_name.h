#ifndef PS_SERVER_CALLER_TASK_NAME_H_
#define PS_SERVER_CALLER_TASK_NAME_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// A task as a map key: (job, index).
using TaskKey = std::pair<std::string, int32_t>;

// The key of the task that sent a message.
TaskKey KeyOf(const Sender& sender);

// A sender without the fields that nobody here knows: it is kept, and told to
// everybody.
Sender SenderOf(const TaskKey& key, uint64_t incarnation);

// Are its tasks those that train?
bool IsTrainingJob(absl::string_view job);

// "/job:worker/task:1", safe to print: what a peer sent as a job name is
// escaped and cut to a sensible length.
std::string TaskName(const TaskKey& key);
std::string TaskName(const Sender& sender);
// "/job:worker/task:1, /job:worker/task:2": as many as a line of text can name.
std::string TaskNames(const std::vector<TaskKey>& tasks);

}  // namespace muster

#endif  // PS_SERVER_CALLER_TASK_NAME_H_
