#ifndef WORKER_LAYER_LAYER_H_
#define WORKER_LAYER_LAYER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/config/attributes.h"
#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"
#include "worker/layer/initializer.h"
#include "worker/layer/layer_operation.h"

namespace muster {

// One parameter of a layer. The model prefixes the name: "conv1/weights".
struct ParameterDef {
  std::string name;
  Shape shape;
  TensorKind kind = TRAINABLE;
  Initializer initializer;
  // The loss has l2 / 2 times the sum of squares of this parameter.
  double l2 = 0;
  // State only: TensorDef.decay of a step in which this layer alone pushes to
  // it.
  double decay = 0;
};

// One layer of a model, for fixed input shapes: what it makes, which
// parameters it has, and which operations it is made of. Shapes are those of
// one example, without the batch. Immutable, thread-safe; no device code.
class Layer {
 public:
  virtual ~Layer() = default;

  const Shape& output_shape() const { return output_shape_; }
  // In the order of the indices in LayerOperation::parameters.
  absl::Span<const ParameterDef> parameters() const { return parameters_; }

  // The layer's operations for `batch_size` rows, a chain: the first reads the
  // layer's inputs, each other the one before it, and the last makes the
  // output. Never empty.
  virtual std::vector<LayerOperation> Lower(int64_t batch_size) const = 0;

 protected:
  explicit Layer(Shape output_shape, std::vector<ParameterDef> parameters = {})
      : output_shape_(std::move(output_shape)),
        parameters_(std::move(parameters)) {}

 private:
  const Shape output_shape_;
  const std::vector<ParameterDef> parameters_;
};

// The probabilities or values that outputs stand for.
enum class Prediction {
  kSoftmax,   // a probability a class, one class a row
  kSigmoid,   // a probability an output, each by itself
  kIdentity,  // the outputs themselves
};

// A loss as data, metrics and predictions see it.
struct LossType {
  // Its labels are float32 targets, one an output; else class numbers.
  bool reads_targets = false;
  Prediction prediction = Prediction::kSoftmax;
  // The metrics of an evaluation whose training names none.
  std::vector<std::string> metrics = {};
};

// One kind of layer, as its source file registers it.
struct LayerType {
  // One line for `musterctl list`.
  std::string help;
  std::vector<AttrDef> attributes;
  // `inputs` has between min_inputs and max_inputs shapes of one example.
  // Errors: InvalidArgument that says what was wanted and what was found; the
  // caller adds the names of the layers.
  absl::StatusOr<std::unique_ptr<Layer>> (*create)(
      const Attributes& attributes, absl::Span<const Shape> inputs);
  int min_inputs = 1;
  int max_inputs = 1;
  // A loss ends a model, and only a loss does.
  std::optional<LossType> loss = std::nullopt;

  bool is_loss() const { return loss.has_value(); }
};

struct LayerTag {
  static constexpr char kKind[] = "layer";
};
using LayerRegistry = Registry<LayerTag, LayerType>;

// Every registered layer with its attributes, for `musterctl list`.
std::string DescribeLayers();

}  // namespace muster

#endif  // WORKER_LAYER_LAYER_H_
