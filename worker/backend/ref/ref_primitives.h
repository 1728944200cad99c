// The primitives of the ref backend, each in the file of its kind (conv2d.cc,
// dense.cc, ...): loops that follow the formulas in operation.h, row-major, one
// thread, sums in T. REQUIRES: a valid description; T is float or double.
#ifndef WORKER_BACKEND_REF_REF_PRIMITIVES_H_
#define WORKER_BACKEND_REF_REF_PRIMITIVES_H_

#include <memory>

#include "common/tensor/dtype.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"

namespace muster {

using RefPrimitive = std::unique_ptr<Primitive>;

// The layout of every operand that holds T here.
template <typename T>
MemoryLayout RefLayout(const Shape& shape) {
  return MemoryLayout::RowMajor(DataTypeOf<T>::kValue, shape);
}

template <typename T>
RefPrimitive MakeRefReorder(const Shape& shape);
template <typename T>
RefPrimitive MakeRefConv2dForward(const Conv2dDesc& desc);
template <typename T>
RefPrimitive MakeRefConv2dBackwardData(const Conv2dDesc& desc);
template <typename T>
RefPrimitive MakeRefConv2dBackwardWeights(const Conv2dDesc& desc);
template <typename T>
RefPrimitive MakeRefDenseForward(const DenseDesc& desc);
template <typename T>
RefPrimitive MakeRefDenseBackwardData(const DenseDesc& desc);
template <typename T>
RefPrimitive MakeRefDenseBackwardWeights(const DenseDesc& desc);
template <typename T>
RefPrimitive MakeRefActivationForward(const ActivationDesc& desc,
                                      const Shape& shape);
template <typename T>
RefPrimitive MakeRefActivationBackward(const ActivationDesc& desc,
                                       const Shape& shape);
template <typename T>
RefPrimitive MakeRefPoolForward(const PoolDesc& desc);
template <typename T>
RefPrimitive MakeRefPoolBackward(const PoolDesc& desc);
template <typename T>
RefPrimitive MakeRefDropoutForward(const DropoutDesc& desc);
template <typename T>
RefPrimitive MakeRefDropoutBackward(const DropoutDesc& desc);
template <typename T>
RefPrimitive MakeRefBatchNormForward(const BatchNormDesc& desc);
template <typename T>
RefPrimitive MakeRefBatchNormBackward(const BatchNormDesc& desc);
template <typename T>
RefPrimitive MakeRefAdd(const AddDesc& desc);
template <typename T>
RefPrimitive MakeRefConcatForward(const ConcatDesc& desc);
template <typename T>
RefPrimitive MakeRefConcatBackward(const ConcatDesc& desc);
template <typename T>
RefPrimitive MakeRefSoftmaxCrossEntropy(const SoftmaxCrossEntropyDesc& desc);
template <typename T>
RefPrimitive MakeRefL2Penalty(const L2PenaltyDesc& desc);

}  // namespace muster

#endif  // WORKER_BACKEND_REF_REF_PRIMITIVES_H_
