#ifndef WORKER_BACKEND_CHECK_LAYOUT_H_
#define WORKER_BACKEND_CHECK_LAYOUT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"

namespace muster {

// For backends, about layouts that a caller passes to a Create method.

// InvalidArgument unless `layout` has this dtype and shape.
absl::Status CheckLayout(absl::string_view operation,
                         const MemoryLayout& layout, DataType dtype,
                         const Shape& shape);

// InvalidArgument unless there is one layout for each source of `desc`.
absl::Status CheckLayouts(const AddDesc& desc, DataType dtype,
                          absl::Span<const MemoryLayout> srcs);
absl::Status CheckLayouts(const ConcatDesc& desc, DataType dtype,
                          absl::Span<const MemoryLayout> srcs);

// InvalidArgument unless both have this dtype and one shape.
absl::Status CheckReorder(const MemoryLayout& from, const MemoryLayout& to,
                          DataType dtype);

}  // namespace muster

#endif  // WORKER_BACKEND_CHECK_LAYOUT_H_
