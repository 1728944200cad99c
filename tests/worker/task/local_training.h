#ifndef TESTS_WORKER_TASK_LOCAL_TRAINING_H_
#define TESTS_WORKER_TASK_LOCAL_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/config/json.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "worker/task/worker_task.h"

namespace muster {

// For whole trainings in this process: workers on the ref backend, each with
// the ps of --standalone.
class LocalTraining : public ::testing::Test {
 protected:
  // A new folder below the test's own.
  static std::string NewTrainDir(const std::string& name);
  // A file's bytes; none if it cannot be read.
  static std::string ReadAll(const std::string& path);
  static absl::StatusOr<JsonValue> ReadResult(const std::string& train_dir);

  // The options of a worker whose lines are kept. Errors: those of
  // ParseTrainingSpec.
  absl::StatusOr<WorkerOptions> MakeOptions(
      const std::string& training, const std::vector<std::string>& overrides,
      const std::string& train_dir);
  absl::StatusOr<std::unique_ptr<WorkerTask>> CreateTask(
      const WorkerOptions& options);

  // All that was said, by any thread.
  std::vector<std::string> Lines() const { return lines_.lines(); }
  // Where it is said.
  Reporter reporter() { return lines_.reporter(); }

 private:
  const MonotonicClock clock_{};
  uint64_t incarnation_ = 0;
  ReportedLines lines_;
};

}  // namespace muster

#endif  // TESTS_WORKER_TASK_LOCAL_TRAINING_H_
