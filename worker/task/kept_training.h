#ifndef WORKER_TASK_KEPT_TRAINING_H_
#define WORKER_TASK_KEPT_TRAINING_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "proto/data_schema.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/hook.h"

namespace muster {

// Where a train_dir keeps its training, so that a run can be used and go on
// without the file and the --set flags that it was made from.
std::string KeptTrainingPath(absl::string_view train_dir);

// The text of that file: a first line that says so, the training, and a last
// line with a CRC.
std::string KeptTrainingText(const TrainingSpec& training);

// The training that a folder keeps.
struct FoundTraining {
  std::string path;
  std::string text;
  // The text, parsed.
  TrainingSpec training;
};

// The one of KeptTrainingPath, or that of an older run. Errors: NotFound if
// there is none, InvalidArgument for a person's own file of that name;
// DataLoss, marked as a file's (OfFile), for one that was cut short or edited,
// or is no training to this program; the system's.
absl::StatusOr<FoundTraining> ReadKeptTraining(const std::string& train_dir);

// OK if the hook may write there. Errors: ReadKeptTraining's for a file that is
// there, and not as a training wrote it.
absl::Status CheckCanKeepTraining(const std::string& train_dir);

// The hook of a chief with a train_dir that writes the training there, with
// every --set and default, and the schema of the data, once this process
// trains: a training that does not fit the checkpoints replaces nothing.
class KeptTraining : public Hook {
 public:
  struct Options {
    std::string train_dir;
    // As it was loaded, before rates are scaled.
    TrainingSpec training;
    DataSchema schema;
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
  absl::Status Write() const;

  const Options options_;
  bool is_written_ = false;
};

}  // namespace muster

#endif  // WORKER_TASK_KEPT_TRAINING_H_
