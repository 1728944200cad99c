#ifndef WORKER_CLIENT_MODEL_FINGERPRINT_H_
#define WORKER_CLIENT_MODEL_FINGERPRINT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"

namespace muster {

// A hash of the tensors (names, shapes, kinds, decays, in creation order), of
// the optimizer with its settings, and of the tables: what a shard holds and
// does. The same on
// every machine; never 0. Checkpoints of another one may fit all the same
// (CheckCompatible).
uint64_t ModelFingerprint(absl::Span<const TensorDef> tensors,
                          const OptimizerSpec& optimizer,
                          absl::Span<const TableDef> tables = {});

}  // namespace muster

#endif  // WORKER_CLIENT_MODEL_FINGERPRINT_H_
