#ifndef TESTS_SIMULATION_SHARD_CUTS_H_
#define TESTS_SIMULATION_SHARD_CUTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"
#include "proto/parameter_service.pb.h"
#include "tests/simulation/oracle_rows.h"
#include "tests/simulation/sim_model.h"

namespace muster {

// All that one shard held in one epoch at the instants of its cuts.
class ShardCuts {
 public:
  // `global_step`: of synchronous replication, the update after which it is.
  // `rows`: of each part of the shard.
  void Add(const BeginSnapshotReply& cut, int64_t global_step,
           const TensorValues& values, std::map<int, HeldRows> rows);

  // The rows of the cut that is what a checkpoint says of the shard, bit for
  // bit, and has this global step, if one is given; null if none is.
  const std::map<int, HeldRows>* Find(const ShardCut& saved,
                                      const TensorValues& values,
                                      std::optional<int64_t> global_step) const;

 private:
  struct Cut {
    int64_t version;
    int64_t global_step;
    TensorValues values;
    std::set<std::string> marks;
    std::map<int, HeldRows> rows;
  };

  std::vector<Cut> cuts_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SHARD_CUTS_H_
