// musterctl table export: the rows of one table as a safetensors file.
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "worker/ctl/checkpoint_path.h"
#include "worker/ctl/export_file.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

// The table's index in the manifest.
absl::StatusOr<int> FindTable(const CheckpointReader& reader,
                              const std::string& name) {
  std::vector<std::string> names;
  for (const SavedTable& table : reader.manifest().tables()) {
    if (table.definition().name() == name) {
      return static_cast<int>(names.size());
    }
    names.push_back(table.definition().name());
  }
  return absl::InvalidArgumentError(
      absl::StrCat(reader.path(), " has no table '", EscapeForLog(name),
                   "'; its tables are: ",
                   names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::Status Export(const VerbCall& call, VerbResult* result) {
  const std::string& name = call.arguments[1];
  const std::string& file = call.arguments[2];
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   OpenNewestCheckpoint(call, call.arguments[0], &result->out));
  ASSIGN_OR_RETURN(const int table, FindTable(*reader, name));
  const SavedTable& saved = reader->manifest().tables(table);
  RETURN_IF_ERROR(ExportFile::Write(
      call, file, RowTensors(saved, ""), [&](ExportFile* written) {
        return written->AppendRows(*reader, table, "");
      }));
  absl::StrAppend(&result->out, "exported ", saved.rows(), " rows of table '",
                  name, "' of ", reader->path(), " to ", file, "\n");
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "table export",
    {"PATH TABLE FILE",
     "writes a table's rows to a new safetensors file.\n"
     "  ids, int64 [n], and values, float32 [n, dim]. A train_dir stands for "
     "its\n  newest whole checkpoint.",
     {},
     3,
     3,
     &Export});

}  // namespace
}  // namespace muster
