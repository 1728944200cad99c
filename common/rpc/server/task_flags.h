// The flags that ps_server and worker have in common.
#ifndef COMMON_RPC_SERVER_TASK_FLAGS_H_
#define COMMON_RPC_SERVER_TASK_FLAGS_H_

#include <string>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/cluster_resolver.h"
#include "common/config/command_line.h"
#include "common/process/environment.h"

ABSL_DECLARE_FLAG(std::string, bind);
ABSL_DECLARE_FLAG(std::string, certs_dir);
ABSL_DECLARE_FLAG(bool, allow_insecure_network);
ABSL_DECLARE_FLAG(std::string, link);
ABSL_DECLARE_FLAG(absl::Duration, worker_timeout);
ABSL_DECLARE_FLAG(absl::Duration, max_wait);

namespace muster {

// The groups of --help. A program may add flags of its own to each.
FlagGroup ClusterFlagGroup();
FlagGroup NetworkFlagGroup();
FlagGroup WaitingFlagGroup();
FlagGroup LogFlagGroup();

// Options of `program` with its version, and with what all programs say of
// the paths among the flags of this file.
CommandLineOptions TaskCommandLine(absl::string_view program);

// The cluster flags and TF_CONFIG; the program adds what it can do.
ClusterOptions ClusterFlags();

// Sets up the log by --log_level and NO_COLOR. `task_name` is
// LogOptions::task_name. Errors: SetUpLogging's.
absl::Status SetUpTaskLogging(const std::string& task_name);

// Logs why the process ends, and returns its exit code.
int LogFailure(const absl::Status& status);

}  // namespace muster

#endif  // COMMON_RPC_SERVER_TASK_FLAGS_H_
