#ifndef WORKER_BACKEND_CHECK_LAYOUTS_H_
#define WORKER_BACKEND_CHECK_LAYOUTS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"

namespace muster {

// InvalidArgument unless `layouts` are those that the operation follows
// (layout_shapes()), of this dtype. One that follows none may be given any.
absl::Status CheckLayouts(const Operation& operation, DataType dtype,
                          absl::Span<const MemoryLayout> layouts);

}  // namespace muster

#endif  // WORKER_BACKEND_CHECK_LAYOUTS_H_
