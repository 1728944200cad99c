#ifndef WORKER_TASK_RESULT_FILE_H_
#define WORKER_TASK_RESULT_FILE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/config/json_object.h"
#include "proto/coordination_service.pb.h"
#include "worker/hook/evaluation.h"

namespace muster {

// A figure that nothing was measured for, as where a finished training was
// started again and made no step: null in the file, and never 0, which would be
// a good loss.
inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// A completed training's outcome: the content of result.json.
struct TrainingResult {
  // One worker's part of the run.
  struct Worker {
    std::string task;
    int64_t steps = 0;
    int64_t examples = 0;
    double steps_per_s = kNotMeasured;
    // The mean.
    double staleness = kNotMeasured;
    int64_t dropped_steps = 0;
    // All-reduce: bytes of parts of gradients that it has pushed to shards in
    // other processes, and of parts of parameters that it has pulled from them
    // for its steps, as they were encoded; the pushes that these are of.
    std::optional<Traffic> traffic;
  };

  std::string model;
  // The namespace of the ps tasks in which it trained; "": the default one.
  std::string job_namespace;
  // "standalone" or "cluster".
  std::string mode;
  // "async", ...
  std::string replication;
  // The mode's numbers, by their names in ReplicationSpec.
  std::map<std::string, int64_t> replication_settings;
  std::string optimizer;
  // The backend, and the device of each of the chief's towers.
  std::string device;
  std::vector<std::string> devices;
  int num_ps = 0;
  // 0: whoever comes.
  int num_workers = 0;
  int compute_threads = 0;
  int64_t seed = 0;
  // Rows of one batch of one tower; batches of each that make one push; rows
  // of one push of a worker.
  int64_t batch_size = 0;
  int64_t accumulate_batches = 1;
  int64_t rows_per_push = 0;

  // One of each half that was evaluated; empty if there is none.
  std::vector<EvaluationResult> evaluations;
  // The loss of the chief's last step in this run.
  double final_loss = kNotMeasured;
  // Updates over all workers, of all runs in this train_dir.
  int64_t global_step = 0;
  // The step at which this run began; 0 unless it was resumed.
  int64_t start_step = 0;
  int64_t examples = 0;
  // Of them, at most so many once more than stop.epochs says: rows of steps
  // that were lost; and so many not, in steps that were passed over.
  int64_t examples_repeated = 0;
  int64_t examples_skipped = 0;
  // With stop.epochs: so many that it says were not trained on; how often each
  // was, in words.
  std::optional<int64_t> examples_left;
  std::string coverage;

  // The rates over all workers, from the chief's entry to the training's end.
  double steps_per_s = kNotMeasured;
  double examples_per_s = kNotMeasured;
  std::vector<Worker> workers;
  // The sum over all workers; 0 but in synchronous replication.
  int64_t dropped_steps = 0;
  // Synchronous replication: what the last update had.
  std::optional<UpdateSize> update;
  // The gradients' codec; "" for float32.
  std::string codec;
  bool error_feedback = false;
  // Bytes of the gradients that this process has pushed: as they were sent, and
  // as float32.
  int64_t gradient_bytes_sent = 0;
  int64_t gradient_bytes_float32 = 0;
  // The same of the parameters that its steps were computed from.
  std::string pull_codec;
  int64_t pull_bytes_received = 0;
  int64_t pull_bytes_float32 = 0;
  // The parameters' bytes, as float32.
  int64_t model_bytes = 0;
  // This process's time to the end of the evaluation.
  double wall_s = 0;
  double time_to_first_step_s = kNotMeasured;

  // "steps", "epochs", "seconds", "target_accuracy", "plateau", "non_finite",
  // or what a hook of the user's gave.
  std::string stop_reason;
  std::string checkpoint;
  // With checkpoint.keep_best: the best checkpoint of all runs in this
  // train_dir, and its figure.
  struct Best {
    std::string checkpoint;
    int64_t step = 0;
    std::string metric;
    double value = kNotMeasured;
  };
  std::optional<Best> best;
  std::string muster_version;
};

// The result as JSON, indented. A number that is not finite is null.
std::string ResultJson(const TrainingResult& result);

// Adds an evaluation's figures and tables to an object. A table of the test
// half has its name alone.
void AddEvaluation(const EvaluationResult& result, JsonObject* json);

// An evaluation alone, as JSON.
std::string EvaluationJson(const EvaluationResult& result);
// Whether the text of a result.json has the figures of these evaluations.
bool HasEvaluations(absl::string_view result_json,
                    absl::Span<const EvaluationResult> evaluations);
// The text of evaluator.json: the newest checkpoint that was evaluated.
std::string EvaluationJson(int64_t global_step, const EvaluationResult& result);

// OK if WriteFileAtomically can begin; changes nothing. Errors: InvalidArgument
// for a folder of that name; the system's, with the path.
absl::Status CheckCanWrite(const std::string& path);

// Replaces the file atomically: it is the old or the new one, also after a
// power cut. Errors: the system's, naming the path.
absl::Status WriteFileAtomically(const std::string& path,
                                 const std::string& content);

}  // namespace muster

#endif  // WORKER_TASK_RESULT_FILE_H_
