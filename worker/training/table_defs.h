// The sparse tables of a program, as its training sets them.
#ifndef WORKER_TRAINING_TABLE_DEFS_H_
#define WORKER_TRAINING_TABLE_DEFS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/program.pb.h"
#include "proto/table.pb.h"
#include "proto/training.pb.h"

namespace muster {

// Checks TrainingSpec.table as far as it can be without a program. Errors:
// InvalidArgument and NotFound naming the field.
absl::Status ValidateTables(const TrainingSpec& training);

// Gives each table the settings of the first TableSpec that matches its name:
// by default the model's optimizer and UNIFORM in [-0.05, 0.05), by the
// training's seed. REQUIRES: a training whose learning rates and schedules are
// fitted (ScaleOptimizer). Errors: InvalidArgument naming the table or the
// field: two tables of one name, a dim that is none or not the spec's, weight
// decay or L2 (which rows that no step has would miss), a pattern without a
// table, and what rows cannot have: all_reduce, pull: IN_PLACE, codecs;
// NotFound for an unknown rule.
absl::StatusOr<std::vector<TableDef>> MakeTableDefs(
    const TrainingSpec& training, absl::Span<const ProgramTable> tables);

// Rows are not carried by all-reduce, in place or by codecs. Errors:
// InvalidArgument naming the field and the first table.
absl::Status CheckSuitsTables(const TrainingSpec& training,
                              absl::Span<const ProgramTable> tables);

}  // namespace muster

#endif  // WORKER_TRAINING_TABLE_DEFS_H_
