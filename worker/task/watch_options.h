#ifndef WORKER_TASK_WATCH_OPTIONS_H_
#define WORKER_TASK_WATCH_OPTIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "proto/training.pb.h"
#include "worker/executor/compiled_model.h"
#include "worker/hook/evaluation_watch.h"

namespace muster {

// What a training wants of its evaluations, which are on the half called `half`
// ("test"). One line says so if the test half then chooses a model. Errors:
// those of EvaluationWatch::OptionsOf and MetricSet::Create.
absl::StatusOr<EvaluationWatch::Options> WatchOptions(
    const TrainingSpec& training, const CompiledModel& model,
    absl::string_view half, const Reporter& reporter);

}  // namespace muster

#endif  // WORKER_TASK_WATCH_OPTIONS_H_
