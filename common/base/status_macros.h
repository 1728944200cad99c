// The only control-flow macros of this project, and the helper that adds
// context to a Status.
#ifndef COMMON_BASE_STATUS_MACROS_H_
#define COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// Returns `status` with "context: " before its message, its code and payloads
// unchanged. An OK status stays as it is.
inline absl::Status Annotate(const absl::Status& status,
                             absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&annotated](absl::string_view url, const absl::Cord& payload) {
        annotated.SetPayload(url, payload);
      });
  return annotated;
}

}  // namespace muster

// Returns from the function if `expression`, a Status, is not OK.
#define RETURN_IF_ERROR(expression)                \
  do {                                             \
    absl::Status muster_status = (expression);     \
    if (!muster_status.ok()) return muster_status; \
  } while (false)

// Assigns the value of `expression`, a StatusOr, to `lhs` (a declaration or an
// lvalue), or returns its status.
//   ASSIGN_OR_RETURN(const Shape shape, ParseShape(text));
#define ASSIGN_OR_RETURN(lhs, expression)                                    \
  MUSTER_ASSIGN_OR_RETURN_(MUSTER_CONCAT_(muster_status_or_, __LINE__), lhs, \
                           expression)
#define MUSTER_CONCAT_INNER_(a, b) a##b
#define MUSTER_CONCAT_(a, b) MUSTER_CONCAT_INNER_(a, b)
#define MUSTER_ASSIGN_OR_RETURN_(status_or, lhs, expression) \
  auto status_or = (expression);                             \
  if (!status_or.ok()) return std::move(status_or).status(); \
  lhs = *std::move(status_or)

#endif  // COMMON_BASE_STATUS_MACROS_H_
