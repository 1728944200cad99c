// The primitives of the ref backend, each in the file of its kind (conv2d.cc,
// dense.cc, ...): loops that follow the formulas in operation.h, row-major, one
// thread, sums in T, which is float or double.
#ifndef WORKER_BACKEND_REF_REF_PRIMITIVE_H_
#define WORKER_BACKEND_REF_REF_PRIMITIVE_H_

#include <memory>
#include <type_traits>

#include "common/tensor/dtype.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"
#include "worker/backend/primitive_table.h"

namespace muster {

// Tells the backend of T apart; all of them are given nothing.
template <typename T>
struct RefContext {};

template <typename T>
using RefPrimitives = PrimitiveTable<RefContext<T>>;

// The layout of every operand that holds T here.
template <typename T>
MemoryLayout RefLayout(const Shape& shape) {
  return MemoryLayout::RowMajor(DataTypeOf<T>::kValue, shape);
}

// Registers the class P, which is made of the description and, if its
// constructor takes one, of the first layout's shape.
template <typename P, typename T, typename Desc>
bool RegisterRefIn(Pass pass) {
  using Made = std::unique_ptr<Primitive>;
  if constexpr (std::is_constructible_v<P, Desc, Shape>) {
    return RefPrimitives<T>::template Register<Desc>(
        pass,
        [](RefContext<T>, const Desc& desc, const MemoryLayout& src) -> Made {
          return std::make_unique<P>(desc, src.shape);
        });
  } else {
    return RefPrimitives<T>::template Register<Desc>(
        pass, [](RefContext<T>, const Desc& desc) -> Made {
          return std::make_unique<P>(desc);
        });
  }
}

// The same for both types: RegisterRef<AddDesc, Add>(Pass::kForward).
template <typename Desc, template <typename T> class P>
bool RegisterRef(Pass pass) {
  return RegisterRefIn<P<float>, float, Desc>(pass) &&
         RegisterRefIn<P<double>, double, Desc>(pass);
}

}  // namespace muster

#endif  // WORKER_BACKEND_REF_REF_PRIMITIVE_H_
