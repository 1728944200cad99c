#ifndef TESTS_SIMULATION_SHARD_AUDIT_H_
#define TESTS_SIMULATION_SHARD_AUDIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/tensor.pb.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/simulation/sim_model.h"

namespace muster {

// The values of these slices that a shard of this incarnation holds, asked for
// as an evaluator asks; null if it is not READY.
std::optional<TensorValues> AuditShard(ParameterShard* shard,
                                       uint64_t incarnation,
                                       const std::string& space,
                                       const std::vector<TensorSlice>& slices);

}  // namespace muster

#endif  // TESTS_SIMULATION_SHARD_AUDIT_H_
