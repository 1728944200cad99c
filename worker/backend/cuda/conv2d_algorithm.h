#ifndef WORKER_BACKEND_CUDA_CONV2D_ALGORITHM_H_
#define WORKER_BACKEND_CUDA_CONV2D_ALGORITHM_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/conv2d_problem.h"

namespace muster {

// All primitives share the memory of the one that takes most.
constexpr size_t kMostConvWorkspaceBytes = size_t{256} << 20;

// CUDNN_STATUS_NOT_SUPPORTED or one of its subcodes.
inline bool IsNotSupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

// The fastest algorithm by cuDNN's own estimate that the device can run, that
// always gives the same bits, and whose workspace is not too large; `problem`
// is set to compute as it wants. Its `memory` is the workspace to give.
//   list(count, &found, perfs): cudnnGetConvolutionXAlgorithm_v7
//   workspace_size(algorithm, &bytes): cudnnGetConvolutionXWorkspaceSize
// Errors: Unimplemented if there is none.
template <typename Perf, typename List, typename WorkspaceSize>
absl::StatusOr<Perf> ChooseAlgorithm(const Conv2dProblem& problem, List list,
                                     WorkspaceSize workspace_size) {
  constexpr int kCount = 32;  // more than there are
  std::vector<Perf> perfs(kCount);
  int found = 0;
  const cudnnStatus_t listed = list(kCount, &found, perfs.data());
  if (IsNotSupported(listed)) {
    found = 0;
  } else {
    RETURN_IF_ERROR(problem.Check(listed));
  }
  perfs.resize(found);
  for (Perf& perf : perfs) {
    if (perf.status != CUDNN_STATUS_SUCCESS) continue;
    if (perf.determinism != CUDNN_DETERMINISTIC) continue;
    RETURN_IF_ERROR(problem.UseMath(perf.mathType));
    // With the math that was set it may differ from the list's, or be refused.
    const cudnnStatus_t sized = workspace_size(perf.algo, &perf.memory);
    if (IsNotSupported(sized)) continue;
    RETURN_IF_ERROR(problem.Check(sized));
    if (perf.memory <= kMostConvWorkspaceBytes) return perf;
  }
  return absl::UnimplementedError(absl::StrCat(
      problem.what(), ": of ", found,
      " algorithms that cuDNN names, none runs on this device, always gives "
      "the same bits, and takes at most ",
      kMostConvWorkspaceBytes, " bytes of workspace"));
}

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CONV2D_ALGORITHM_H_
