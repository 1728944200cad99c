// How a model looks from outside.
#include "ps_server/shard/shard_model.h"

namespace muster {

ShardState ShardModel::State() const {
  ShardState state;
  state.set_phase(epoch_.phase());
  state.set_model_epoch(epoch_.number());
  state.set_fingerprint(epoch_.phase() == EMPTY ? 0 : definition_.fingerprint);
  state.set_version(version_);
  state.set_tensors(tensors_.num_tensors());
  state.set_bytes(tensors_.parameter_bytes());
  state.set_slot_bytes(tensors_.slot_bytes());
  state.set_applied_parts(counters_.applied_parts);
  state.set_duplicate_parts(counters_.duplicate_parts);
  state.set_fenced_parts(counters_.fenced_parts);
  tables_.AddStates(state.mutable_tables());
  return state;
}

void ShardModel::AddDefinitions(ShardState* state) const {
  for (int i = 0; i < tensors_.size(); ++i) {
    *state->add_definitions() = tensors_[i].def();
  }
}

ShardCounters ShardModel::counters() const {
  ShardCounters counters = counters_;
  counters.unfinished_steps = marks_.unfinished_steps();
  counters.given_up_snapshots = snapshot_.times_given_up();
  return counters;
}

}  // namespace muster
