#ifndef WORKER_INPUT_DATA_SET_CSV_HEADER_H_
#define WORKER_INPUT_DATA_SET_CSV_HEADER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/part.h"
#include "worker/input/file/csv_reader.h"

namespace muster {

// Whether the first record of a CSV file is a row (input.header: false).
inline bool HasNoHeader(const InputSpec& spec) {
  return spec.has_header() && !spec.header();
}

// The columns of text that the first record of a CSV file, which `reader` has
// read, names; of one without a header "0", "1" and so on. Errors, with path
// and line: InvalidArgument (fields that another character separates; a column
// without a name; a name twice; what looks like a row, unless input.header says
// that it is the header).
absl::StatusOr<std::vector<Column>> ReadCsvHeader(const DataSetRequest& request,
                                                  const CsvReader& reader,
                                                  char delimiter);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_CSV_HEADER_H_
