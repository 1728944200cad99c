#ifndef COMMON_CONFIG_LOCAL_PATH_H_
#define COMMON_CONFIG_LOCAL_PATH_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Refuses what the user cannot mean as the name of a file or folder of this
// machine, though the system would take it for one: "s3://bucket/run" (any
// SCHEME:/ of two letters or more), "~/run", "~user/run", "$HOME/run",
// "run_$SLURM_JOB_ID", "${HOME}", "$(pwd)", "`pwd`", and quotes or blanks
// around it. Names such as "a~b", "a$b" and "cost$5" are honest. `name` is the
// flag's or field's, "--train_dir". Errors: InvalidArgument, with what to do.
// scripts/base/launcher_flags.py is its twin.
absl::Status CheckLocalPath(absl::string_view name, absl::string_view path);

}  // namespace muster

#endif  // COMMON_CONFIG_LOCAL_PATH_H_
