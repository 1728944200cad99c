// schema.textproto: what the data of a run are, for people, and for programs
// before there is a checkpoint.
#ifndef WORKER_CHECKPOINT_SCHEMA_TEXT_H_
#define WORKER_CHECKPOINT_SCHEMA_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/data_schema.pb.h"

namespace muster {

// Its path in a train_dir.
std::string SchemaPath(absl::string_view train_dir);

// The text of the file: a first line with the version, the schema, and a last
// line with a CRC.
std::string FormatSchema(const DataSchema& schema);

// Errors, without the path: DataLoss for what is no such text, or was cut short
// or edited, or is of a later version, which is named.
absl::StatusOr<DataSchema> ParseSchema(absl::string_view text);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_SCHEMA_TEXT_H_
