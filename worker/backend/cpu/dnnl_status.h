#ifndef WORKER_BACKEND_CPU_DNNL_STATUS_H_
#define WORKER_BACKEND_CPU_DNNL_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace muster {

// The Status for what oneDNN answered while doing `what`.
absl::Status DnnlStatus(dnnl_status_t status, absl::string_view what);

// Returns make(), or the Status of the dnnl::error that it threw. The one
// place where exceptions of oneDNN end. `make` returns a Status or StatusOr.
template <typename Make>
auto CatchDnnl(absl::string_view what, Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    return DnnlStatus(error.status, what);
  }
}

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_DNNL_STATUS_H_
