#include "tests/simulation/sim_model.h"

#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/cluster/placement.h"
#include "worker/training/replication_settings.h"

namespace muster {
namespace {

void AddFloat(const char* name, double value, OptimizerSpec* optimizer) {
  Attr* const attr = optimizer->add_attr();
  attr->set_name(name);
  attr->set_f(value);
}

ReplicationSpec ReplicationOf(const Scenario& scenario, Bug bug) {
  ReplicationSpec replication;
  if (scenario.all_reduce) {
    replication.mutable_all_reduce();
    const absl::Status fits =
        FitReplication(scenario.num_workers, &replication);
    assert(fits.ok());
    if (bug == Bug::kGoesOnWithoutTheLost) {
      replication.mutable_sync()->set_min_replicas(1);
    }
  } else if (scenario.mode == Mode::kSync) {
    SyncReplication& sync = *replication.mutable_sync();
    sync.set_replicas_to_aggregate(scenario.replicas_to_aggregate);
    sync.set_total_replicas(scenario.num_workers);
    sync.set_min_replicas(scenario.min_replicas);
  } else if (scenario.mode == Mode::kBoundedStaleness) {
    replication.mutable_bounded_staleness()->set_bound(scenario.bound);
  }
  return replication;
}

}  // namespace

bool SameBits(const TensorValues& a, const TensorValues& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() ||
        std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) !=
            0) {
      return false;
    }
  }
  return true;
}

std::vector<TensorDef> SimModel::DefsOf(int ps) const {
  std::vector<TensorDef> defs;
  for (const int tensor : tensors_of[ps]) {
    defs.push_back(placed.tensors[tensor]);
  }
  return defs;
}

SimModel MakeSimModel(const Scenario& scenario, Bug bug) {
  SimModel model;
  model.scenario = scenario;
  model.tensors_of.resize(scenario.num_ps);
  for (int i = 0; i < scenario.num_ps * scenario.tensors_per_ps; ++i) {
    TensorDef tensor;
    tensor.set_name(absl::StrCat("counts/", i));
    // More elements than workers, and not the same number in all tensors.
    tensor.add_shape(scenario.num_workers + i % 3);
    tensor.set_dtype(FLOAT32);
    model.placed.tensors.push_back(tensor);
    model.placed.placement.push_back(
        {TensorExtent{i % scenario.num_ps, 0, tensor.shape(0)}});
    model.tensors_of[i % scenario.num_ps].push_back(i);
  }
  OptimizerSpec& optimizer = model.placed.definition.optimizer;
  optimizer.set_name(scenario.momentum ? "momentum" : "sgd");
  // A gradient of -1 adds exactly 1.
  AddFloat("learning_rate", 1, &optimizer);
  if (scenario.momentum) {
    AddFloat("momentum", 0, &optimizer);
    model.slots = {"momentum"};
  }
  model.placed.definition.replication = ReplicationOf(scenario, bug);
  model.placed.definition.fingerprint = 4711;
  const absl::StatusOr<TransferPlan> plan = PlanTransfer(
      model.placed.tensors, model.placed.placement,
      std::vector<int64_t>(scenario.num_ps, scenario.max_part_bytes));
  assert(plan.ok());
  model.part_of.resize(model.num_tensors());
  for (const std::vector<PlannedPart>& parts : plan->parts) {
    for (size_t part = 0; part < parts.size(); ++part) {
      for (const PlannedSlice& slice : parts[part].slices) {
        model.part_of[slice.tensor] = static_cast<int>(part);
      }
    }
  }
  return model;
}

}  // namespace muster
