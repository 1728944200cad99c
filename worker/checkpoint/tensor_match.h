#ifndef WORKER_CHECKPOINT_TENSOR_MATCH_H_
#define WORKER_CHECKPOINT_TENSOR_MATCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"

namespace muster {

// A tensor that somebody has, and that a parameter may start from.
struct SourceTensor {
  std::string name;
  Shape shape;
  // As safetensors names it: "F32".
  std::string dtype;
};

// How the tensors of --init_from or --read_from are matched to parameters.
struct MatchOptions {
  // How they are called in the model: rules of NameMap.
  std::vector<std::string> name_map;
  // Parameters that lack a tensor keep their seeded values, and tensors that
  // the model lacks are passed over; else both are errors.
  bool partial = false;
  // All parameters must have a tensor, also one that name_map leaves out; else
  // such a parameter keeps its seeded value.
  bool whole = false;
};

// Which tensor each parameter starts from.
struct TensorMatch {
  // Indices of the tensors by parameter; -1 for one that has none.
  std::vector<int> sources;
  // A line for each parameter and tensor that MatchOptions allowed to lack.
  std::vector<std::string> remarks;

  int num_tensors() const;
};

// Matches by name and shape. `holder` has the tensors: "the file", "the
// namespace". Errors: InvalidArgument naming tensors: a rule of the map that
// matches none; names that are missing on either side, unless options.partial;
// nothing that matches; two for one parameter; other shapes or no float dtype,
// with the map under which those layers start from the seed.
absl::StatusOr<TensorMatch> MatchTensors(absl::Span<const SourceTensor> tensors,
                                         absl::Span<const TensorDef> parameters,
                                         const MatchOptions& options,
                                         const std::string& holder);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_TENSOR_MATCH_H_
