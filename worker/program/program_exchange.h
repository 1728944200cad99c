#ifndef WORKER_PROGRAM_PROGRAM_EXCHANGE_H_
#define WORKER_PROGRAM_PROGRAM_EXCHANGE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/clock.h"
#include "proto/training.pb.h"
#include "worker/client/parameter_client.h"
#include "worker/step/ps_exchange.h"

namespace muster {

// The exchange of a program's steps, in any mode of replication: parameters
// come to `values`, the program's own tensors, with the answers to the push
// before where the mode allows it. ProgramSteps says with PushFrom where each
// step's gradients lie, and which of them may leave early; none does where
// hooks look at parameters before the push. `client` and `clock` outlive it.
std::unique_ptr<PsExchange> MakeProgramExchange(
    ParameterClient* client, const TrainingSpec& training,
    std::vector<absl::Span<float>> values, const Clock* clock);

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_EXCHANGE_H_
