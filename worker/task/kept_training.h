#ifndef WORKER_TASK_KEPT_TRAINING_H_
#define WORKER_TASK_KEPT_TRAINING_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "proto/training.pb.h"
#include "worker/hook/hook.h"

namespace muster {

// Where a train_dir keeps its training, so that the model can be used without
// the file and the --set flags that it was made from. People's own trainings
// may lie there, too, and have other names.
std::string KeptTrainingPath(absl::string_view train_dir);

// The hook of a chief with a train_dir that writes the training there, with
// every --set and default, once this process trains: a training that does not
// fit the checkpoints replaces nothing.
class KeptTraining : public Hook {
 public:
  struct Options {
    std::string train_dir;
    // As it was loaded, before rates are scaled.
    TrainingSpec training;
    // Replaces a file as a whole.
    std::function<absl::Status(const std::string& path,
                               const std::string& text)>
        write_file;
    // A line for the operator.
    Reporter reporter;
  };

  explicit KeptTraining(Options options);

  // A file that cannot be written is a line, and no error: training goes on.
  absl::Status AfterEnter(const EpochRecord& epoch) override;

 private:
  const Options options_;
  bool is_written_ = false;
};

}  // namespace muster

#endif  // WORKER_TASK_KEPT_TRAINING_H_
