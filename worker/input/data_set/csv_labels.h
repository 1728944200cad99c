// The columns of CSV files that input.label_column names.
#ifndef WORKER_INPUT_DATA_SET_CSV_LABELS_H_
#define WORKER_INPUT_DATA_SET_CSV_LABELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/file/csv_columns.h"

namespace muster {

// The field as it stands, or its default.
std::string CsvLabelColumn(const InputSpec& spec);

// The names in it, separated by commas.
std::vector<std::string> CsvLabelColumns(const InputSpec& spec);

// The columns of a row's targets. Errors: InvalidArgument (not as many as the
// request wants).
absl::StatusOr<std::vector<CsvColumn>> CsvTargetColumns(
    const DataSetRequest& request);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_CSV_LABELS_H_
