#ifndef WORKER_CHECKPOINT_INITIAL_WEIGHTS_H_
#define WORKER_CHECKPOINT_INITIAL_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/safetensors_reader.h"
#include "proto/tensor.pb.h"
#include "worker/checkpoint/tensor_match.h"

namespace muster {

// First values of parameters from a safetensors file of anybody's: --init_from.
// The whole file is checked when it is opened. Thread-safe.
class InitialWeights {
 public:
  struct Options : MatchOptions {
    // "": there are none.
    std::string path;
  };

  // Opens the file and checks that each of its tensors has the shape of its
  // parameter and finite values of a float dtype. `file_system` is not kept.
  // Errors: InvalidArgument, naming file and tensors, also for a file that is
  // not there, is damaged or hostile.
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

  // A line for each tensor that Options::partial allowed.
  const std::vector<std::string>& remarks() const { return remarks_; }
  const std::string& path() const { return path_; }
  int num_tensors() const;

  // Writes the values of a parameter, by its index, if the file has them.
  // Errors: the file's, if it was changed since.
  absl::Status Read(size_t parameter, absl::Span<float> dst) const;

 private:
  InitialWeights(std::string path, std::unique_ptr<SafetensorsReader> reader);

  // Fills sources_ and remarks_.
  absl::Status Match(const Options& options,
                     absl::Span<const TensorDef> parameters);
  absl::Status CheckValues(absl::Span<const TensorDef> parameters) const;

  const std::string path_;
  const std::unique_ptr<SafetensorsReader> reader_;
  // Names in the file by parameter; "" for one that it lacks.
  std::vector<std::string> sources_;
  std::vector<std::string> remarks_;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_INITIAL_WEIGHTS_H_
