#include "worker/backend/cpu/dnnl_status.h"

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status DnnlStatus(dnnl_status_t status, absl::string_view what) {
  switch (status) {
    case dnnl_success:
      return absl::OkStatus();
    case dnnl_out_of_memory:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": oneDNN is out of memory"));
    case dnnl_unimplemented:
      return absl::UnimplementedError(
          absl::StrCat(what, ": oneDNN does not implement it"));
    default:
      return absl::InternalError(absl::StrCat(
          what, ": oneDNN failed with status ", static_cast<int>(status)));
  }
}

}  // namespace muster
