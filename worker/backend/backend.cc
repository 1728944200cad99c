#include "worker/backend/backend.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// More threads than any machine has: a typing error.
constexpr int kMaxComputeThreads = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(
    absl::string_view name, const BackendOptions& options) {
  if (options.compute_threads < 1 ||
      options.compute_threads > kMaxComputeThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "create backend '", name, "': compute_threads must be in [1, ",
        kMaxComputeThreads, "], got ", options.compute_threads));
  }
  ASSIGN_OR_RETURN(const BackendFactory factory, BackendRegistry::Find(name));
  return factory.create(options);
}

}  // namespace muster
