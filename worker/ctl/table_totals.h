#ifndef WORKER_CTL_TABLE_TOTALS_H_
#define WORKER_CTL_TABLE_TOTALS_H_

#include <string>
#include <vector>

#include "proto/parameter_service.pb.h"

namespace muster {

// A line for each sparse table of each namespace, with the sums over all ps
// tasks, whose answers these are; one line if there are none.
std::string DescribeTables(const std::vector<ListNamespacesReply>& shards);

}  // namespace muster

#endif  // WORKER_CTL_TABLE_TOTALS_H_
