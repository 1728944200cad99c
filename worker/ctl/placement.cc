// musterctl placement: which ps task would hold which parameter.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_resolver.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/placement_table.h"
#include "common/cluster/task_id.h"
#include "common/tensor/row_hash.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/ctl/training_flag.h"
#include "worker/ctl/verb.h"
#include "worker/model/model_graph.h"
#include "worker/training/place_model.h"

namespace muster {
namespace {

// Which of `num_ps` ps tasks would hold which parameter, as a table.
absl::StatusOr<std::string> DescribePlacement(const TrainingSpec& training,
                                              int num_ps) {
  ASSIGN_OR_RETURN(const ModelGraph graph,
                   ModelGraph::Create(training.model()));
  std::vector<TensorDef> tensors;
  for (const ModelGraph::Parameter& parameter : graph.parameters()) {
    TensorDef tensor;
    tensor.set_name(parameter.name);
    for (const int64_t dim : parameter.shape.dims()) tensor.add_shape(dim);
    tensor.set_dtype(FLOAT32);
    tensor.set_kind(parameter.kind);
    tensors.push_back(tensor);
  }
  ASSIGN_OR_RETURN(const PlacedModel placed,
                   PlaceModel(training, tensors, num_ps));
  return PlacementTable(tensors, placed.placement, num_ps);
}

// Which logical shards of every sparse table they would have.
std::string DescribeTablePlacement(int num_ps) {
  std::string text = absl::StrCat("rows of a program's tables, by logical ",
                                  "shard (of ", kLogicalShards, ")\n");
  for (int ps = 0; ps < num_ps; ++ps) {
    const int first = FirstLogicalShard(ps, num_ps);
    const int end = FirstLogicalShard(ps + 1, num_ps);
    absl::StrAppendFormat(
        &text, "%-12s %s\n",
        first == end ? "none" : absl::StrCat(first, " to ", end - 1),
        TaskName(MakeTaskId(kPsJob, ps)));
  }
  return text;
}

absl::StatusOr<int> NumPs(const VerbCall& call) {
  if (call.flags.count("cluster") > 0 && call.flags.count("num_ps") > 0) {
    return absl::InvalidArgumentError("wanted --cluster or --num_ps, not both");
  }
  if (call.flags.count("cluster") > 0) {
    ClusterOptions options;
    options.cluster_file = call.Flag("cluster");
    options.jobs = {kPsJob};
    options.can_all_reduce = true;
    ASSIGN_OR_RETURN(const ResolvedCluster cluster, ResolveCluster(options));
    return cluster.spec.num_ps();
  }
  if (call.flags.count("num_ps") == 0) return 1;
  const std::string text = call.Flag("num_ps");
  int num_ps = 0;
  if (!absl::SimpleAtoi(text, &num_ps) || num_ps < 1 ||
      num_ps > ClusterSpec::kMaxTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--num_ps must be from 1 to ", ClusterSpec::kMaxTasks,
                     ", found '", EscapeForLog(text), "'"));
  }
  return num_ps;
}

absl::Status Place(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const int num_ps, NumPs(call));
  ASSIGN_OR_RETURN(const TrainingSpec training, LoadTrainingOf(call));
  ASSIGN_OR_RETURN(result->out, DescribePlacement(training, num_ps));
  result->out += DescribeTablePlacement(num_ps);
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "placement",
    {"",
     "prints which ps task would hold which parameter of a training,\n"
     "  and which rows of a program's sparse tables.",
     {{"training", "The file with the training spec."},
      {"set", "Overrides a field of it; may be given several times."},
      {"cluster", "The file with the cluster."},
      {"num_ps", "Instead of --cluster: so many ps tasks; by default 1."}},
     0,
     0,
     &Place});

}  // namespace
}  // namespace muster
