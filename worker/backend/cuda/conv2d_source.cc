#include "worker/backend/cuda/conv2d_source.h"

#include "common/base/status_macros.h"
#include "worker/backend/cuda/cuda_layout.h"

namespace muster {
namespace {

// A copy from the middle of one tensor to the other's.
StridedCopyShape CopyOf(const Shape& from, const Shape& to, Index4 begin) {
  const StridedShape src = *StridedShapeOf(NhwcLayout(from));
  const StridedShape dst = *StridedShapeOf(NhwcLayout(to));
  return {dst.sizes, dst.strides, src.sizes, src.strides, begin};
}

}  // namespace

Conv2dSource::Conv2dSource(const Conv2dDesc& desc, const Conv2dProblem& problem,
                           ScratchParts* scratch)
    : is_padded_(problem.desc().src_shape() != desc.src_shape()),
      pad_(CopyOf(desc.src_shape(), problem.desc().src_shape(),
                  {0, 0, -desc.window.pad_top, -desc.window.pad_left})),
      crop_(CopyOf(problem.desc().src_shape(), desc.src_shape(),
                   {0, 0, desc.window.pad_top, desc.window.pad_left})),
      place_(scratch->Add(
          is_padded_ ? problem.desc().src_shape().num_elements() * sizeof(float)
                     : 0)),
      operand_(problem.precision(), problem.desc().src_shape().num_elements(),
               scratch) {}

absl::Status Conv2dSource::Load(const KernelStream& stream, const float* src,
                                void* scratch) const {
  if (!is_padded_) return operand_.Load(stream, src, scratch);
  float* const whole = ScratchParts::At<float>(scratch, place_);
  RETURN_IF_ERROR(StridedCopy(stream, pad_, src, whole));
  return operand_.Load(stream, whole, scratch);
}

absl::Status Conv2dSource::Store(const KernelStream& stream, float* diff_src,
                                 void* scratch) const {
  float* const whole = Whole(diff_src, scratch);
  RETURN_IF_ERROR(operand_.Store(stream, whole, scratch));
  if (!is_padded_) return absl::OkStatus();
  return StridedCopy(stream, crop_, whole, diff_src);
}

}  // namespace muster
