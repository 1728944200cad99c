#include "worker/task/placement_preview.h"

#include <vector>

#include "common/base/status_macros.h"
#include "common/cluster/placement_table.h"
#include "worker/model/model_graph.h"
#include "worker/training/place_model.h"

namespace muster {

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

}  // namespace muster
