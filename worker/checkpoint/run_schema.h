#ifndef WORKER_CHECKPOINT_RUN_SCHEMA_H_
#define WORKER_CHECKPOINT_RUN_SCHEMA_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/data_schema.pb.h"

namespace muster {

// What a train_dir says of its run's data.
struct RunSchema {
  // Null: nothing.
  std::shared_ptr<const DataSchema> schema;
  // There is a run: a checkpoint, whole or not.
  bool has_checkpoint = false;
  // For the operator, where a run does not know its data; "" else.
  std::string note;
};

// The schema of the newest manifest that can be read, or else that of
// schema.textproto, which is read and checked at any rate. A train_dir that
// cannot be listed, and checkpoints that are damaged or of a newer format, are
// for those who load them: they say nothing here. Errors: DataLoss, marked as a
// file's (OfFile), for a schema.textproto that is not as it was written; the
// system's.
absl::StatusOr<RunSchema> ReadRunSchema(FileSystem* file_system,
                                        const std::string& train_dir);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_RUN_SCHEMA_H_
