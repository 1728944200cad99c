#ifndef WORKER_CHECKPOINT_SETTLED_EVALUATIONS_H_
#define WORKER_CHECKPOINT_SETTLED_EVALUATIONS_H_

#include <cstdint>
#include <string>

#include "common/base/reporter.h"
#include "common/checkpoint/file_system.h"
#include "proto/evaluation_history.pb.h"

namespace muster {

// The evaluations that a chief goes on from in `model_epoch`: the `known` ones,
// of ps task 0 or of the manifest that was restored; or those of the newest
// manifest, if that is of this epoch and not older: a chief that died may have
// saved what it had not reported. A best model whose checkpoint cannot be read
// is forgotten, which is said.
EvaluationHistory SettleEvaluations(FileSystem* file_system,
                                    const std::string& train_dir,
                                    int64_t model_epoch,
                                    EvaluationHistory known,
                                    const Reporter& reporter);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_SETTLED_EVALUATIONS_H_
