// The files of a data set as a schema keeps them, to see whether they are the
// same when a run goes on.
#ifndef WORKER_INPUT_DATA_SET_DATA_FILES_H_
#define WORKER_INPUT_DATA_SET_DATA_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/data_schema.pb.h"

namespace muster {

// Looks at the size of each of `paths`, whose names are those below `dir`, as
// Utf8OfBytes makes them. A file that cannot be looked at counts as empty.
// `examples`: 0 for a stream.
DataFiles DescribeDataFiles(int64_t examples, const std::string& dir,
                            const std::vector<std::string>& paths);

// "a.csv has 20 bytes, had 10": how `now` differs from `before`; "" if it does
// not. Names no more than a few files.
std::string DescribeChange(const DataFiles& before, const DataFiles& now);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_DATA_FILES_H_
