#ifndef WORKER_LAYER_WEIGHT_ATTRIBUTES_H_
#define WORKER_LAYER_WEIGHT_ATTRIBUTES_H_

#include <string>
#include <vector>

#include "common/config/attributes.h"
#include "common/tensor/shape.h"
#include "worker/layer/layer.h"

namespace muster {

// The attributes that layers with weights and a bias (conv2d, dense) share.
struct WeightOptions {
  // "none", "relu", "sigmoid" or "tanh".
  std::string activation;
  bool use_bias = true;
  double l2 = 0;
  Initializer initializer;
  Initializer bias_initializer;
};

// The attributes: activation, use_bias, l2, initializer, initializer_value,
// bias_value.
std::vector<AttrDef> WeightAttributes();
WeightOptions ReadWeightOptions(const Attributes& attributes);

// "weights", and "bias" of weights_shape.dim(0) elements if it is used.
std::vector<ParameterDef> WeightParameters(const WeightOptions& options,
                                           const Shape& weights_shape);

// `desc` (Conv2dDesc or DenseDesc) and then the activation.
std::vector<LayerOperation> LowerWeighted(const OperationDesc& desc,
                                          const WeightOptions& options);

}  // namespace muster

#endif  // WORKER_LAYER_WEIGHT_ATTRIBUTES_H_
