#ifndef WORKER_CHECKPOINT_INITIAL_WEIGHTS_H_
#define WORKER_CHECKPOINT_INITIAL_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/safetensors_reader.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "worker/checkpoint/given_rows.h"
#include "worker/checkpoint/tensor_match.h"

namespace muster {

// First values of parameters: --init_from, a safetensors file of anybody's, a
// checkpoint, or a train_dir, whose newest one is taken; and first rows of
// tables, by their names, which no map changes. All that is used is checked
// when it is opened. Thread-safe.
class InitialWeights {
 public:
  struct Options : MatchOptions {
    // "": there are none.
    std::string path;
    // The model's, which start from its rows.
    std::vector<TableDef> tables;
  };

  // Opens the file and checks that each tensor that is used has the shape of
  // its parameter and finite values of a float dtype. `file_system` is not
  // kept. Errors: InvalidArgument, naming path and tensors, also for a file
  // that is not there, is damaged, hostile or of a newer format, and for a
  // folder without a checkpoint.
  static absl::StatusOr<std::unique_ptr<InitialWeights>> Open(
      FileSystem* file_system, const Options& options,
      absl::Span<const TensorDef> parameters);

  // The same for a run with this train_dir ("": none). Null if it has no file,
  // or if train_dir has a checkpoint, which wins and is not touched. Says that,
  // and the remarks.
  static absl::StatusOr<std::unique_ptr<InitialWeights>> OpenForRun(
      FileSystem* file_system, const Options& options,
      absl::Span<const TensorDef> parameters, const std::string& train_dir,
      const Reporter& reporter);

  // A line for each tensor that Options allowed to lack, for the checkpoint
  // that was taken, and for newer ones that are damaged.
  const std::vector<std::string>& remarks() const { return remarks_; }
  // As the flag gives it.
  const std::string& path() const { return path_; }
  // The file, or the folder of the one checkpoint.
  const std::string& source() const { return source_; }
  int num_tensors() const;
  const GivenRows& rows() const { return *rows_; }

  // Writes the values of a parameter, by its index, if the file has them.
  // Errors: the file's, if it was changed since.
  absl::Status Read(size_t parameter, absl::Span<float> dst) const;

 private:
  explicit InitialWeights(const Options& options)
      : path_(options.path), tables_(options.tables), source_(options.path) {}

  // Fills what holds the tensors.
  absl::Status OpenSource(FileSystem* file_system);
  // The same for a folder with these names in it.
  absl::Status OpenFolder(FileSystem* file_system,
                          const std::vector<std::string>& names);
  // Fills rows_ and appends to remarks_.
  absl::Status MatchTables(const Options& options);
  // REQUIRES: a checkpoint.
  std::vector<std::string> TablesThatModelLacks() const;
  // Fills tensors_ and appends to remarks_.
  absl::Status Match(const Options& options,
                     absl::Span<const TensorDef> parameters);
  absl::Status CheckValues(absl::Span<const TensorDef> parameters) const;

  const std::string path_;
  const std::vector<TableDef> tables_;
  std::string source_;
  // Either.
  std::unique_ptr<SafetensorsReader> file_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  const SafetensorsReader* reader_ = nullptr;
  // Names in the file by parameter; "" for one that it lacks.
  std::vector<std::string> tensors_;
  // Set once it is open; reads from the above.
  std::optional<GivenRows> rows_;
  std::vector<std::string> remarks_;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_INITIAL_WEIGHTS_H_
