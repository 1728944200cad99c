#ifndef WORKER_SESSION_TRAINED_ROWS_H_
#define WORKER_SESSION_TRAINED_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "proto/coordination_service.pb.h"

namespace muster {

// Rows that stop.epochs wants, and that were not trained on; none without
// stop.epochs, or where the rows of an epoch are not known.
std::optional<int64_t> RowsLeft(const JobState& job);

// How often the job has trained on its examples, for an operator: "each of
// 60000 examples was trained on 2 times, but for 96 of the last epoch, less
// than a step". "" where RowsLeft has none. `skips_bad_records`: good ones were
// in their places, which is said.
std::string DescribeTrainedRows(const JobState& job,
                                bool skips_bad_records = false);

}  // namespace muster

#endif  // WORKER_SESSION_TRAINED_ROWS_H_
