#ifndef WORKER_BACKEND_CUDA_CONV2D_SOURCE_H_
#define WORKER_BACKEND_CUDA_CONV2D_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/conv2d_problem.h"
#include "worker/backend/cuda/product_operand.h"
#include "worker/backend/cuda/scratch_parts.h"
#include "worker/backend/cuda/strided_copy_kernel.h"
#include "worker/backend/operation.h"

namespace muster {

// The src of a convolution as cuDNN takes it, or diff_src as cuDNN writes it:
// if the problem has the pads in its src, a copy in scratch with the zeros
// around it. A value.
class Conv2dSource {
 public:
  // `desc` is what was asked for, `problem` what cuDNN is asked for.
  Conv2dSource(const Conv2dDesc& desc, const Conv2dProblem& problem,
               ScratchParts* scratch);

  // Where cuDNN reads or writes it.
  void* At(float* operand, void* scratch) const {
    return operand_.At(Whole(operand, scratch), scratch);
  }
  // Puts src there, with its pads, for cuDNN to read.
  absl::Status Load(const KernelStream& stream, const float* src,
                    void* scratch) const;
  // Puts what cuDNN has written there into diff_src, without the pads.
  absl::Status Store(const KernelStream& stream, float* diff_src,
                     void* scratch) const;

 private:
  // Where the tensor with its pads is.
  float* Whole(float* operand, void* scratch) const {
    return is_padded_ ? ScratchParts::At<float>(scratch, place_) : operand;
  }

  bool is_padded_;
  // To the larger tensor, and back.
  StridedCopyShape pad_;
  StridedCopyShape crop_;
  int64_t place_;
  ProductOperand operand_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CONV2D_SOURCE_H_
