#include "worker/layer/weight_attributes.h"

namespace muster {
namespace {

struct NamedActivation {
  const char* name;
  ActivationKind kind;
};

constexpr NamedActivation kActivations[] = {
    {"relu", ActivationKind::kRelu},
    {"sigmoid", ActivationKind::kSigmoid},
    {"tanh", ActivationKind::kTanh},
};

std::vector<std::string> ActivationNames() {
  std::vector<std::string> names = {"none"};
  for (const NamedActivation& known : kActivations) {
    names.emplace_back(known.name);
  }
  return names;
}

}  // namespace

std::vector<AttrDef> WeightAttributes() {
  return {
      StringAttr("activation", "of the output")
          .OneOf(ActivationNames())
          .Default(std::string("none")),
      BoolAttr("use_bias", "whether there is a bias").Default(true),
      FloatAttr("l2", "adds l2 * sum(weights^2) / 2 to the loss")
          .AtLeast(0)
          .Default(0.0),
      StringAttr("initializer", "of the weights")
          .OneOf(InitializerNames())
          .Default(std::string("glorot_uniform")),
      FloatAttr("initializer_value", "of initializer 'constant'").Default(0.0),
      FloatAttr("bias_value", "first value of the bias").Default(0.0),
  };
}

WeightOptions ReadWeightOptions(const Attributes& attributes) {
  WeightOptions options;
  options.activation = attributes.String("activation");
  options.use_bias = attributes.Bool("use_bias");
  options.l2 = attributes.Float("l2");
  options.initializer = MakeInitializer(attributes.String("initializer"),
                                        attributes.Float("initializer_value"));
  options.bias_initializer = {Initializer::Kind::kConstant,
                              attributes.Float("bias_value")};
  return options;
}

std::vector<ParameterDef> WeightParameters(const WeightOptions& options,
                                           const Shape& weights_shape) {
  std::vector<ParameterDef> parameters = {
      {"weights", weights_shape, TRAINABLE, options.initializer, options.l2}};
  if (options.use_bias) {
    parameters.push_back(
        {"bias", {weights_shape.dim(0)}, TRAINABLE, options.bias_initializer});
  }
  return parameters;
}

std::vector<LayerOperation> LowerWeighted(const OperationDesc& desc,
                                          const WeightOptions& options) {
  std::vector<LayerOperation> operations = {{desc, {0}}};
  if (options.use_bias) operations[0].parameters.push_back(1);
  for (const NamedActivation& known : kActivations) {
    if (options.activation != known.name) continue;
    operations.push_back({ActivationDesc{known.kind}, {}});
  }
  return operations;
}

}  // namespace muster
