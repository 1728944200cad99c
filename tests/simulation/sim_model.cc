#include "tests/simulation/sim_model.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"
#include "common/rpc/protocol.h"
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
    if (!scenario.is_open) {
      sync.set_replicas_to_aggregate(scenario.replicas_to_aggregate);
      sync.set_total_replicas(scenario.num_workers);
    }
    sync.set_min_replicas(scenario.min_replicas);
  } else if (scenario.mode == Mode::kBoundedStaleness) {
    replication.mutable_bounded_staleness()->set_bound(
        scenario.bound + (bug == Bug::kBoundExceeded ? 1 : 0));
  }
  return replication;
}

// Every third.
TensorKind KindOf(int tensor) { return tensor % 3 == 1 ? STATE : TRAINABLE; }

TensorDef Counters(const std::string& name, int64_t elements) {
  TensorDef tensor;
  tensor.set_name(name);
  tensor.add_shape(elements);
  tensor.set_dtype(FLOAT32);
  return tensor;
}

// A run of blocks for each ps task and one more; or each block by itself, so
// that a ps task has pieces that are no neighbours.
void AddCutTensor(SimModel* model) {
  const Scenario& scenario = model->scenario;
  const int blocks = scenario.num_ps + 2;
  // The last one has room for the counters.
  const TensorDef tensor = Counters(
      "cut", (blocks - 1) * kBlockElements + blocks + scenario.num_workers);
  PlacementSpec spec;
  if (scenario.seed % 2 == 0) {
    spec.mutable_partition()->mutable_fixed()->set_parts(blocks);
  }
  const absl::StatusOr<Placement> placement =
      PlaceTensors({tensor}, scenario.num_ps, spec);
  assert(placement.ok());
  model->placed.tensors.push_back(tensor);
  model->placed.placement.push_back(placement->front());
}

void AddBlocks(const TransferPlan& plan, SimModel* model) {
  model->blocks_of.resize(plan.parts.size());
  for (size_t ps = 0; ps < plan.parts.size(); ++ps) {
    for (size_t part = 0; part < plan.parts[ps].size(); ++part) {
      for (const PlannedSlice& slice : plan.parts[ps][part].slices) {
        const int64_t end = slice.offset + slice.length;
        for (int64_t at = slice.offset; at < end; at += kBlockElements) {
          model->blocks_of[ps].push_back(
              {slice.tensor, at, std::min(kBlockElements, end - at),
               at / kBlockElements, static_cast<int>(part)});
        }
      }
    }
  }
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

int64_t SimModel::PushValue(uint64_t incarnation, int64_t step) {
  // SplitMix64's finalizer.
  uint64_t bits = incarnation * 0x9e3779b97f4a7c15u +
                  static_cast<uint64_t>(step) * 0xd1342543de82ef95u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return 1 + static_cast<int64_t>((bits ^ (bits >> 31)) % kMostPushValue);
}

std::vector<TensorSlice> SimModel::SlicesOf(int ps) const {
  std::vector<TensorSlice> slices;
  for (const CounterBlock& block : blocks_of[ps]) {
    TensorSlice& slice = slices.emplace_back();
    slice.set_tensor(placed.tensors[block.tensor].name());
    slice.set_offset(block.begin);
    slice.set_length(block.length);
  }
  return slices;
}

SimModel MakeSimModel(const Scenario& scenario, Bug bug) {
  SimModel model;
  model.scenario = scenario;
  for (int i = 0; i < scenario.num_ps * scenario.tensors_per_ps; ++i) {
    // More elements than workers, and not the same number in all tensors.
    TensorDef tensor =
        Counters(absl::StrCat("counts/", i), scenario.num_workers + i % 3);
    tensor.set_kind(KindOf(i));
    model.placed.tensors.push_back(tensor);
    model.placed.placement.push_back(
        {TensorExtent{i % scenario.num_ps, 0, tensor.shape(0)}});
  }
  if (scenario.is_cut) AddCutTensor(&model);
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
  AddBlocks(*plan, &model);
  return model;
}

}  // namespace muster
