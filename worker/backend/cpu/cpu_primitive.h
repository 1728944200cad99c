// The primitives of the cpu backend, each in the file of its kind (conv2d.cc,
// dense.cc, ...). Their functions may throw dnnl::error.
#ifndef WORKER_BACKEND_CPU_CPU_PRIMITIVE_H_
#define WORKER_BACKEND_CPU_CPU_PRIMITIVE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/backend/cpu/dnnl_primitive.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"
#include "worker/backend/primitive_table.h"

namespace muster {

using CpuPrimitive = absl::StatusOr<std::unique_ptr<Primitive>>;
using CpuPrimitives = PrimitiveTable<const CpuContext&>;

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_CPU_PRIMITIVE_H_
