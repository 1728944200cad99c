#include "worker/model/graph_def.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

void SetOutputShape(int64_t batch_size, const Shape& shape, NodeDef* node) {
  SummaryShape* const output =
      (*node->mutable_attr())["_output_shapes"].mutable_list()->add_shape();
  output->add_dim()->set_size(batch_size);
  for (const int64_t size : shape.dims()) output->add_dim()->set_size(size);
}

// `prefix` stands before all names.
void AddTower(const ModelGraph& model, int64_t batch_size,
              absl::string_view prefix, absl::string_view device,
              GraphDef* graph) {
  for (const ModelGraph::Node& layer : model.nodes()) {
    NodeDef* const node = graph->add_node();
    node->set_name(absl::StrCat(prefix, layer.name));
    node->set_op(layer.type);
    for (const int input : layer.inputs) {
      node->add_input(absl::StrCat(prefix, model.nodes()[input].name));
    }
    node->set_device(absl::StrCat(
        "/device:",
        absl::AsciiStrToUpper(layer.device.empty() ? device : layer.device)));
    SetOutputShape(batch_size, layer.shape, node);
  }
}

}  // namespace

GraphDef MakeGraphDef(const ModelGraph& model, int64_t batch_size,
                      absl::Span<const std::string> devices) {
  GraphDef graph;
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string prefix =
        devices.size() == 1 ? "" : absl::StrCat("tower_", i, "/");
    AddTower(model, batch_size, prefix, devices[i], &graph);
  }
  return graph;
}

}  // namespace muster
