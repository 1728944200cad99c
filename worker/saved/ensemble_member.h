#ifndef WORKER_SAVED_ENSEMBLE_MEMBER_H_
#define WORKER_SAVED_ENSEMBLE_MEMBER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/executor/compiled_model.h"

namespace muster {

// One of the trained models that are used as one.
struct EnsembleMember {
  // In messages and results: the run, as the user names it; "" for the only
  // one.
  std::string name;
  // Checked.
  TrainingSpec training;
  // One of them: see SavedModel::Load.
  std::string train_dir;
  InitialWeights::Options init;
};

// The members that `runs` names: train_dirs, or files that end in .safetensors.
// Each has the training that its folder keeps (KeptTraining), else that of the
// file `training`; `sets` override fields in all. Errors: InvalidArgument
// naming the run if it is named twice or has no training, or if no run wants
// `training`; those of ParseTrainingSpec.
absl::StatusOr<std::vector<EnsembleMember>> ReadMembers(
    const std::vector<std::string>& runs, const std::string& training,
    absl::Span<const std::string> sets);

// "member 'run2': ", or "" for one without a name.
std::string MessageStart(const EnsembleMember& member);

// OK if all are of the same data: the fields of `input` that say which rows
// there are. The others, and input.map, may differ. InvalidArgument naming two
// members and both texts; also for classes that two train_dirs name
// differently.
absl::Status CheckSameData(const std::vector<EnsembleMember>& members);

// OK if all models say the same kind of thing of a row. InvalidArgument naming
// two members, and how many outputs of which kind each has. REQUIRES: a model a
// member, in order.
absl::Status CheckSameOutputs(const std::vector<EnsembleMember>& members,
                              absl::Span<const CompiledModel* const> models);

// Two members with the same text read the same values of a row.
std::string RowText(const EnsembleMember& member);

}  // namespace muster

#endif  // WORKER_SAVED_ENSEMBLE_MEMBER_H_
