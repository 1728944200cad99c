#include "worker/model/model_graph.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/config/attributes.h"
#include "common/config/name_pattern.h"
#include "worker/model/layer_devices.h"

namespace muster {
namespace {

constexpr char kInputName[] = "input";
// A parameter's name may have 255 characters on the wire, and its layer is
// only the first half of it.
constexpr size_t kMaxNameLength = 200;
// The bytes of as many values, gradients and padding can still be counted.
constexpr int64_t kMaxElements = int64_t{1} << 58;

std::string Title(const LayerSpec& layer) {
  return absl::StrCat("layer '", layer.name(), "' (", layer.type(), ")");
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '/' || c == '-';
}

absl::Status CheckInputCount(const LayerType& type, size_t found) {
  const size_t min = type.min_inputs;
  const size_t max = type.max_inputs;
  if (found >= min && found <= max) return absl::OkStatus();
  const std::string wanted =
      min == max ? absl::StrCat(min) : absl::StrCat("at least ", min);
  return absl::InvalidArgumentError(
      absl::StrCat("needs ", wanted, " input(s), found ", found));
}

}  // namespace

absl::StatusOr<ModelGraph> ModelGraph::Create(const ModelSpec& spec) {
  if (spec.layer().empty()) {
    return absl::InvalidArgumentError("the model has no layers");
  }
  ModelGraph graph;
  RETURN_IF_ERROR(graph.AddInput(spec));
  for (int i = 0; i < spec.layer_size(); ++i) {
    RETURN_IF_ERROR(graph.AddLayer(spec, i));
  }
  RETURN_IF_ERROR(graph.CheckEnds());
  RETURN_IF_ERROR(graph.CheckSize());
  RETURN_IF_ERROR(graph.Freeze(spec));
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, LayerDevices(spec));
  for (size_t i = 0; i < devices.size(); ++i) {
    graph.nodes_[i + 1].device = devices[i];
  }
  return graph;
}

absl::Status ModelGraph::AddInput(const ModelSpec& spec) {
  const std::vector<int64_t> dims(spec.input_shape().begin(),
                                  spec.input_shape().end());
  absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return Annotate(shape.status(), "model.input_shape");
  const bool positive =
      std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d > 0; });
  if (!positive || (dims.size() != 1 && dims.size() != 3)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.input_shape must be [channels, height, width] or "
                     "[features], all positive; found ",
                     shape->ToString()));
  }
  Node node;
  node.name = kInputName;
  node.type = kInputName;
  node.shape = *std::move(shape);
  nodes_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status ModelGraph::AddLayer(const ModelSpec& spec, int index) {
  const LayerSpec& layer = spec.layer(index);
  RETURN_IF_ERROR(CheckName(layer, index));
  const std::string title = Title(layer);
  const absl::StatusOr<LayerType> type = LayerRegistry::Find(layer.type());
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer '", layer.name(), "': ", type.status().message()));
  }
  if (type->is_loss() != (index == spec.layer_size() - 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        title, type->is_loss() ? ": a loss must be the last layer"
                               : ": the last layer must be a loss, such as "
                                 "softmax_cross_entropy"));
  }
  if (type->is_loss()) loss_ = *type->loss;
  Node node;
  node.name = layer.name();
  node.type = layer.type();
  ASSIGN_OR_RETURN(node.inputs, FindInputs(spec, index));
  RETURN_IF_ERROR(Annotate(CheckInputCount(*type, node.inputs.size()), title));
  const absl::StatusOr<Attributes> attributes =
      Attributes::Create(type->attributes, layer.attr());
  if (!attributes.ok()) return Annotate(attributes.status(), title);
  std::vector<Shape> shapes;
  for (const int input : node.inputs) shapes.push_back(nodes_[input].shape);
  absl::StatusOr<std::unique_ptr<Layer>> made =
      type->create(*attributes, shapes);
  if (!made.ok()) {
    return Annotate(made.status(), absl::StrCat(title, " cannot read ",
                                                Describe(node.inputs)));
  }
  node.layer = *std::move(made);
  node.shape = node.layer->output_shape();
  RETURN_IF_ERROR(Annotate(AddParameters(layer, &node), title));
  nodes_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status ModelGraph::CheckName(const LayerSpec& layer, int index) const {
  if (layer.name().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.layer[", index, "] (", layer.type(), ") has no name"));
  }
  if (layer.name().size() > kMaxNameLength ||
      !std::all_of(layer.name().begin(), layer.name().end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.layer[", index, "]: a name has at most ", kMaxNameLength,
        " letters, digits, '_', '.', '-' and '/'; found '", layer.name(), "'"));
  }
  if (layer.name() == kInputName) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.layer[", index,
                     "]: 'input' is the name of the model's input; choose "
                     "another"));
  }
  const int other = FindNode(layer.name());
  if (other < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model.layer[", index, "]: the name '", layer.name(),
                   "' is that of model.layer[", other - 1, "] already"));
}

absl::StatusOr<std::vector<int>> ModelGraph::FindInputs(const ModelSpec& spec,
                                                        int index) const {
  const LayerSpec& layer = spec.layer(index);
  if (layer.input().empty()) {
    return std::vector<int>{static_cast<int>(nodes_.size()) - 1};
  }
  std::vector<int> inputs;
  for (const std::string& name : layer.input()) {
    const int node = FindNode(name);
    if (node >= 0) {
      inputs.push_back(node);
      continue;
    }
    const bool later =
        std::any_of(spec.layer().begin() + index, spec.layer().end(),
                    [&name](const LayerSpec& l) { return l.name() == name; });
    if (later) {
      return absl::InvalidArgumentError(absl::StrCat(
          Title(layer), ": its input '", name,
          "' is not before it; list layers in the order of data, without "
          "cycles"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        Title(layer), ": ", UnknownNameMessage("input", name, NodeNames())));
  }
  return inputs;
}

absl::Status ModelGraph::AddParameters(const LayerSpec& layer, Node* node) {
  if (!layer.share().empty()) return ShareParameters(layer, node);
  for (const ParameterDef& def : node->layer->parameters()) {
    node->parameters.push_back(static_cast<int>(parameters_.size()));
    parameters_.push_back({absl::StrCat(layer.name(), "/", def.name), def.shape,
                           def.kind, def.initializer, def.l2, def.decay});
    const std::string& name = parameters_.back().name;
    const auto same =
        std::find_if(parameters_.begin(), parameters_.end() - 1,
                     [&name](const Parameter& p) { return p.name == name; });
    if (same == parameters_.end() - 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("another layer has a parameter '", name, "'"));
  }
  return absl::OkStatus();
}

absl::Status ModelGraph::ShareParameters(const LayerSpec& layer, Node* node) {
  const int other = FindNode(layer.share());
  if (other < 0) {
    return absl::InvalidArgumentError(
        UnknownNameMessage("layer to share with", layer.share(), NodeNames()));
  }
  const absl::Span<const ParameterDef> own = node->layer->parameters();
  const std::vector<int>& theirs = nodes_[other].parameters;
  if (own.empty() || nodes_[other].type != layer.type() ||
      own.size() != theirs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", own.size(), " parameter(s) and cannot share those of '",
        layer.share(), "' (", nodes_[other].type, "), which has ",
        theirs.size()));
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const Parameter& shared = parameters_[theirs[i]];
    if (own[i].shape == shared.shape) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "needs ", own[i].name, " of shape ", own[i].shape.ToString(),
        " and cannot share '", shared.name, "' of layer '", layer.share(),
        "', whose shape is ", shared.shape.ToString()));
  }
  for (size_t i = 0; i < own.size(); ++i) {
    double& decay = parameters_[theirs[i]].decay;
    decay += own[i].decay * (1 - decay);
  }
  node->parameters = theirs;
  return absl::OkStatus();
}

absl::Status ModelGraph::Freeze(const ModelSpec& spec) {
  for (int i = 0; i < spec.layer_size(); ++i) {
    const LayerSpec& layer = spec.layer(i);
    // Those that it shares are their owner's.
    if (!layer.freeze() || !layer.share().empty()) continue;
    for (const int parameter : nodes_[i + 1].parameters) {
      FreezeParameter(parameter);
    }
  }
  for (const std::string& pattern : spec.freeze_pattern()) {
    RETURN_IF_ERROR(FreezeMatches(pattern));
  }
  for (int i = 0; i < spec.layer_size(); ++i) {
    const LayerSpec& layer = spec.layer(i);
    const Node& node = nodes_[i + 1];
    if (!layer.freeze() || CountFrozen(node) == node.parameters.size()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        Title(layer), ": freeze: its parameters are those of '", layer.share(),
        "', which is not frozen; freeze that layer"));
  }
  return CheckFrozen();
}

absl::Status ModelGraph::FreezeMatches(const std::string& text) {
  constexpr char kField[] = "model.freeze_pattern";
  ASSIGN_OR_RETURN(const std::unique_ptr<NamePattern> pattern,
                   NamePattern::Create(kField, text));
  std::vector<std::string> names;
  for (const Node& node : nodes_) {
    if (node.parameters.empty()) continue;
    names.push_back(node.name);
    const bool all = pattern->MatchesWhole(node.name);
    for (const int parameter : node.parameters) {
      names.push_back(parameters_[parameter].name);
      if (all || pattern->MatchesWhole(parameters_[parameter].name)) {
        FreezeParameter(parameter);
      }
    }
  }
  return pattern->CheckMatches(kField, names);
}

void ModelGraph::FreezeParameter(int parameter) {
  parameters_[parameter].kind = FROZEN;
  parameters_[parameter].l2 = 0;
  parameters_[parameter].decay = 0;
}

size_t ModelGraph::CountFrozen(const Node& node) const {
  return std::count_if(node.parameters.begin(), node.parameters.end(),
                       [this](int i) { return parameters_[i].kind == FROZEN; });
}

absl::Status ModelGraph::CheckFrozenAverages(const Node& node,
                                             const std::string& trained) const {
  std::string frozen;
  std::string other;
  for (size_t i = 0; i < node.parameters.size(); ++i) {
    const Parameter& parameter = parameters_[node.parameters[i]];
    if (parameter.kind != FROZEN) {
      other = parameter.name;
    } else if (node.layer->parameters()[i].kind == STATE) {
      frozen = parameter.name;
    }
  }
  if (frozen.empty()) return absl::OkStatus();
  if (!other.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "freeze: '", frozen, "' is frozen and '", other,
        "' is not: moving averages stand still with the whole layer; freeze "
        "layer '",
        node.name, "'"));
  }
  if (trained.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "freeze: layer '", node.name, "' (", node.type,
      ") is frozen, and layer '", trained,
      "' before it is not: no gradient passes through a frozen one; freeze "
      "what is before it, or with a freeze_pattern all but its moving "
      "averages"));
}

// Whether there is something to train, and each batch norm can be as it is.
absl::Status ModelGraph::CheckFrozen() const {
  const auto is_kind = [](TensorKind kind) {
    return [kind](const Parameter& p) { return p.kind == kind; };
  };
  if (std::any_of(parameters_.begin(), parameters_.end(), is_kind(FROZEN)) &&
      std::none_of(parameters_.begin(), parameters_.end(),
                   is_kind(TRAINABLE))) {
    return absl::InvalidArgumentError(
        absl::StrCat("freeze: all parameters of the model are frozen, '",
                     parameters_.front().name, "' to '",
                     parameters_.back().name, "'; leave something to train"));
  }
  // By node, the name of a layer at or before it that is trained.
  std::vector<std::string> trained(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    for (const int input : node.inputs) {
      if (!trained[input].empty()) trained[i] = trained[input];
    }
    RETURN_IF_ERROR(CheckFrozenAverages(node, trained[i]));
    for (const int parameter : node.parameters) {
      if (parameters_[parameter].kind == TRAINABLE) trained[i] = node.name;
    }
  }
  return absl::OkStatus();
}

// So that sums over the parameters do not overflow.
absl::Status ModelGraph::CheckSize() const {
  int64_t left = kMaxElements;
  for (const Parameter& parameter : parameters_) {
    if (parameter.shape.num_elements() <= left) {
      left -= parameter.shape.num_elements();
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has more than ", kMaxElements, " parameter values with '",
        parameter.name, "' of shape ", parameter.shape.ToString()));
  }
  return absl::OkStatus();
}

absl::Status ModelGraph::CheckEnds() const {
  std::vector<bool> is_read(nodes_.size(), false);
  for (const Node& node : nodes_) {
    for (const int input : node.inputs) is_read[input] = true;
  }
  for (size_t i = 0; i + 1 < nodes_.size(); ++i) {
    if (is_read[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("no layer reads the output of '", nodes_[i].name,
                     "'; name it in an `input` or remove the layer"));
  }
  return absl::OkStatus();
}

int ModelGraph::FindNode(const std::string& name) const {
  const auto it = std::find_if(nodes_.begin(), nodes_.end(),
                               [&](const Node& n) { return n.name == name; });
  return it == nodes_.end() ? -1 : static_cast<int>(it - nodes_.begin());
}

std::vector<std::string> ModelGraph::NodeNames() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_) names.push_back(node.name);
  return names;
}

std::string ModelGraph::Describe(absl::Span<const int> nodes) const {
  return absl::StrJoin(nodes, ", ", [this](std::string* out, int node) {
    absl::StrAppend(out, "'", nodes_[node].name, "' ",
                    nodes_[node].shape.ToString());
  });
}

}  // namespace muster
