#ifndef WORKER_MODEL_MODEL_GRAPH_H_
#define WORKER_MODEL_MODEL_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/layer/layer.h"

namespace muster {

// A checked ModelSpec: its layers in order, with every shape and parameter
// known. It holds no memory for them. Immutable after Create, thread-safe.
class ModelGraph {
 public:
  // Node 0 is the model's input and has no layer; the last one is the loss.
  struct Node {
    std::string name;
    // The layer's registered name; "input" for node 0.
    std::string type;
    std::unique_ptr<Layer> layer;
    // Nodes before this one.
    std::vector<int> inputs;
    // One example's. The loss has the shape of its input.
    Shape shape;
    // Into parameters(), in the order of the layer's own.
    std::vector<int> parameters;
    // The device that it names, as CanonicalDevice has it; "" for none.
    std::string device;
  };

  struct Parameter {
    std::string name;
    Shape shape;
    TensorKind kind = TRAINABLE;
    Initializer initializer;
    // 0 if it is frozen, as the decay.
    double l2 = 0;
    // TensorDef.decay of one step of all layers that share it.
    double decay = 0;
  };

  // Errors, all InvalidArgument and naming the layer: empty model, bad input
  // shape, names missing, double or reserved, unknown type, attribute or input
  // (with the nearest name), inputs that come later, wrong number of inputs,
  // shapes that a layer cannot take (both layers with their shapes), outputs
  // that nobody reads, no loss at the end, a loss before the end, `share` of
  // something whose parameters differ, more bytes than can be counted; `freeze`
  // of parameters that another layer owns, a freeze_pattern that is none or
  // matches nothing, nothing left to train, a batch norm that is frozen in part
  // or behind a layer that is trained; those of LayerDevices.
  static absl::StatusOr<ModelGraph> Create(const ModelSpec& spec);

  absl::Span<const Node> nodes() const { return nodes_; }
  // In creation order.
  absl::Span<const Parameter> parameters() const { return parameters_; }
  // The shape of one example.
  const Shape& input_shape() const { return nodes_.front().shape; }
  int64_t num_outputs() const { return nodes_.back().shape.num_elements(); }
  // The loss's.
  const LossType& loss() const { return loss_; }

 private:
  ModelGraph() = default;

  absl::Status AddInput(const ModelSpec& spec);
  absl::Status AddLayer(const ModelSpec& spec, int index);
  absl::Status CheckName(const LayerSpec& layer, int index) const;
  absl::StatusOr<std::vector<int>> FindInputs(const ModelSpec& spec,
                                              int index) const;
  absl::Status AddParameters(const LayerSpec& layer, Node* node);
  absl::Status ShareParameters(const LayerSpec& layer, Node* node);
  absl::Status Freeze(const ModelSpec& spec);
  absl::Status FreezeMatches(const std::string& pattern);
  void FreezeParameter(int parameter);
  absl::Status CheckFrozen() const;
  // `trained`: a layer before the node that is; "" for none.
  absl::Status CheckFrozenAverages(const Node& node,
                                   const std::string& trained) const;
  // The frozen ones among a node's parameters.
  size_t CountFrozen(const Node& node) const;
  absl::Status CheckEnds() const;
  absl::Status CheckSize() const;
  // -1 if there is none.
  int FindNode(const std::string& name) const;
  std::vector<std::string> NodeNames() const;
  // "'conv1' [32, 28, 28]" for each, separated by commas.
  std::string Describe(absl::Span<const int> nodes) const;

  LossType loss_;
  std::vector<Node> nodes_;
  std::vector<Parameter> parameters_;
};

}  // namespace muster

#endif  // WORKER_MODEL_MODEL_GRAPH_H_
