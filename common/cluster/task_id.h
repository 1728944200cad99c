#ifndef COMMON_CLUSTER_TASK_ID_H_
#define COMMON_CLUSTER_TASK_ID_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"

namespace muster {

// The jobs of a cluster.
inline constexpr char kPsJob[] = "ps";
inline constexpr char kWorkerJob[] = "worker";
inline constexpr char kChiefJob[] = "chief";
inline constexpr char kEvaluatorJob[] = "evaluator";

// In the place of workers' addresses, or of the own index: whoever comes.
inline constexpr char kAnyTask[] = "any";

TaskId MakeTaskId(absl::string_view job, int index);

// "/job:worker/task:1".
std::string TaskName(const TaskId& task);

// The inverse of TaskName. Errors: InvalidArgument.
absl::StatusOr<TaskId> ParseTaskName(absl::string_view name);

// The job that `name` means: TensorFlow's older "master" and newer
// "coordinator" are the chief. Errors: InvalidArgument with the nearest name.
absl::StatusOr<std::string> ParseJobName(absl::string_view name);

// By job, then by index.
bool operator==(const TaskId& a, const TaskId& b);
bool operator!=(const TaskId& a, const TaskId& b);
bool operator<(const TaskId& a, const TaskId& b);

}  // namespace muster

#endif  // COMMON_CLUSTER_TASK_ID_H_
