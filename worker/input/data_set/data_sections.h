#ifndef WORKER_INPUT_DATA_SET_DATA_SECTIONS_H_
#define WORKER_INPUT_DATA_SET_DATA_SECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/coordination_service.pb.h"
#include "proto/data_schema.pb.h"

namespace muster {

// Of the texts of all sections together.
inline constexpr size_t kMaxSectionBytes = 64 << 10;

// What a worker's data are, for ps task 0 to compare with the other workers':
// "columns", "classes", "map", "label", "rows" (not of a stream), "workers"
// (among which the rows are divided) and "files", in this order, of the
// training half, which alone every worker opens. A line of a text is an item,
// escaped. A digest is of the whole text, which is then cut behind a line if
// all do not fit: the shorter ones stay whole.
std::vector<DataSection> MakeDataSections(const DataSchema& schema,
                                          int64_t num_workers);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_DATA_SECTIONS_H_
