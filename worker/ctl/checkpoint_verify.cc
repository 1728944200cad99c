// musterctl checkpoint verify: whether checkpoints are whole, a line each.
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "worker/ctl/checkpoint_path.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::Status Verify(const VerbCall& call, VerbResult* result) {
  const std::string& path = call.arguments[0];
  ASSIGN_OR_RETURN(const auto paths, CheckpointsIn(call.file_system, path));
  VerifyCheckpoints(call, paths.value_or(std::vector<std::string>{path}),
                    result);
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "checkpoint verify",
    {"PATH",
     "checks every byte of a checkpoint, or of all in a train_dir.\n"
     "  One line a checkpoint; ends with 3 if one is not whole.",
     {},
     1,
     1,
     &Verify});

}  // namespace
}  // namespace muster
