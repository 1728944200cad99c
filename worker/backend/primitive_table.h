#ifndef WORKER_BACKEND_PRIMITIVE_TABLE_H_
#define WORKER_BACKEND_PRIMITIVE_TABLE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/backend/backend.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"

namespace muster {

// InvalidArgument unless `layouts` are those that the operation follows
// (layout_shapes()), of this dtype. One that follows none may be given any.
absl::Status CheckLayouts(const Operation& operation, DataType dtype,
                          absl::Span<const MemoryLayout> layouts);

// The primitives of one backend: from operation and pass to the function that
// makes one. A row is registered by the source file that implements it:
//
//   // In an anonymous namespace of batch_norm.cc:
//   [[maybe_unused]] const bool kRegistered =
//       CpuPrimitives::Register<BatchNormDesc>(Pass::kForward, &MakeForward);
//
// The file's library needs `alwayslink`, or the linker drops it. `Context` is
// what a backend gives to all of them, and tells the tables apart.
//
// Thread-safe: all rows are there before main.
template <typename Context>
class PrimitiveTable {
 public:
  using Layouts = absl::Span<const MemoryLayout>;
  using Make =
      std::function<Backend::Created(Context, const Operation&, Layouts)>;

  // Adds a row. `make` is given checked arguments: (context, desc, layouts),
  // or the first layout alone, or none. Returns true, for the registrar's
  // constant.
  template <typename Desc, typename Function>
  static bool Register(Pass pass, Function make) {
    Rows()[{Operation(std::in_place_type<Desc>).index(), pass}] =
        [make](Context context, const Operation& operation,
               [[maybe_unused]] Layouts layouts) -> Backend::Created {
      const Desc& desc = *std::get_if<Desc>(&operation);
      if constexpr (std::is_invocable_v<Function, Context, const Desc&>) {
        return make(context, desc);
      } else if constexpr (std::is_invocable_v<Function, Context, const Desc&,
                                               const MemoryLayout&>) {
        return make(context, desc, layouts[0]);
      } else {
        return make(context, desc, layouts);
      }
    };
    return true;
  }

  // Backend::Create of `backend`, with its errors.
  static Backend::Created Create(const Backend& backend, Context context,
                                 const Operation& operation, Pass pass,
                                 Layouts layouts) {
    const auto row = Rows().find({operation.index(), pass});
    if (row == Rows().end()) {
      return absl::UnimplementedError(absl::StrCat(
          PrimitiveName(operation, pass), " is not there on the backend '",
          backend.name(), "'; take one that has it, such as --device=cpu"));
    }
    RETURN_IF_ERROR(std::visit([](const auto& desc) { return desc.Validate(); },
                               operation));
    RETURN_IF_ERROR(CheckLayouts(operation, backend.dtype(), layouts));
    return row->second(context, operation, layouts);
  }

 private:
  using Row = std::pair<size_t, Pass>;

  static std::map<Row, Make>& Rows() {
    // Leaked on purpose: registrars of other files run in any order.
    static auto& rows = *new std::map<Row, Make>();
    return rows;
  }
};

}  // namespace muster

#endif  // WORKER_BACKEND_PRIMITIVE_TABLE_H_
