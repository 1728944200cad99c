#include "worker/model/expand_blocks.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

constexpr char kInputName[] = "input";
// Blocks of blocks of ..., and the layers that come of them.
constexpr int kMaxDepth = 16;
constexpr int kMaxLayers = 100000;
// One layer's: each "input" in a block stands for all that its use reads.
constexpr size_t kMaxInputs = 1000;

using Names = std::vector<std::string>;
using Layers = google::protobuf::RepeatedPtrField<LayerSpec>;
// A block's parameters by name.
using Values = std::map<std::string, Attr>;

template <typename Map>
Names KeysOf(const Map& map) {
  Names keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

// The name in the whole model of the layer `name` of the block that `use` uses.
std::string JoinNames(absl::string_view use, absl::string_view name) {
  const bool is_suffix = name.empty() || absl::StartsWith(name, "_");
  return absl::StrCat(use, use.empty() || is_suffix ? "" : "/", name);
}

// The list of layers that is being expanded: the model's or a block's.
struct Scope {
  // The block, for messages; null for the model.
  const BlockSpec* block = nullptr;
  // The prefix of its layers; "" for the model's.
  std::string use;
  // The layers that "input" stands for.
  Names inputs;
  Values values;
  int depth = 0;
  // The use is frozen, and so are its layers.
  bool freeze = false;
  // The use's device, of those layers that name none.
  std::string device;
};

class BlockExpander {
 public:
  explicit BlockExpander(const ModelSpec& model) : model_(model) {}

  absl::StatusOr<Layers> Run() {
    for (const BlockSpec& block : model_.block()) {
      RETURN_IF_ERROR(AddBlock(block));
    }
    Scope scope;
    scope.inputs = {kInputName};
    RETURN_IF_ERROR(Expand(model_.layer(), scope).status());
    return std::move(layers_);
  }

 private:
  absl::Status AddBlock(const BlockSpec& block) {
    const std::string title = absl::StrCat("block '", block.name(), "'");
    if (block.name().empty()) {
      return absl::InvalidArgumentError("a block of the model has no name");
    }
    if (LayerRegistry::Find(block.name()).ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          title, " has the name of a type of layer: give it another"));
    }
    if (block.layer().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(title, " has no layers"));
    }
    Values defaults;
    for (const Attr& parameter : block.parameter()) {
      if (!defaults.emplace(parameter.name(), parameter).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            title, " has two parameters '", parameter.name(), "'"));
      }
    }
    if (!blocks_.emplace(block.name(), &block).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(title, " is there twice: give one another name"));
    }
    return absl::OkStatus();
  }

  // Appends `layers`; returns the name of the last one's output.
  absl::StatusOr<std::string> Expand(const Layers& layers, const Scope& scope) {
    // The output of each layer of this list, by the layer's name in it.
    std::map<std::string, std::string> outputs;
    Names before = scope.inputs;
    for (const LayerSpec& layer : layers) {
      LayerSpec expanded = layer;
      const absl::Status status =
          Resolve(scope, outputs, before, layer, &expanded);
      absl::StatusOr<std::string> output =
          status.ok() ? Append(expanded, scope) : status;
      if (!output.ok()) return InScope(output.status(), scope, layer);
      if (!outputs.emplace(layer.name(), *output).second) {
        return InScope(absl::InvalidArgumentError("is there twice"), scope,
                       layer);
      }
      before = {*std::move(output)};
    }
    return before.front();
  }

  static absl::Status InScope(const absl::Status& status, const Scope& scope,
                              const LayerSpec& layer) {
    const std::string title =
        absl::StrCat("layer '", layer.name(), "' (", layer.type(), ")");
    return Annotate(status, scope.block == nullptr
                                ? title
                                : absl::StrCat("block '", scope.block->name(),
                                               "', ", title));
  }

  // Gives the layer its names and values in the whole model.
  static absl::Status Resolve(const Scope& scope,
                              const std::map<std::string, std::string>& outputs,
                              const Names& before, const LayerSpec& layer,
                              LayerSpec* expanded) {
    expanded->set_name(JoinNames(scope.use, layer.name()));
    expanded->set_freeze(layer.freeze() || scope.freeze);
    if (layer.device().empty()) expanded->set_device(scope.device);
    expanded->clear_input();
    Names inputs;
    for (const std::string& name : layer.input()) {
      const auto known = outputs.find(name);
      if (known != outputs.end()) {
        inputs.push_back(known->second);
      } else if (name == kInputName) {
        inputs.insert(inputs.end(), scope.inputs.begin(), scope.inputs.end());
      } else if (scope.block == nullptr) {
        // A layer within a block, or a mistake that the graph tells.
        inputs.push_back(name);
      } else {
        Names names = KeysOf(outputs);
        names.emplace_back(kInputName);
        return absl::InvalidArgumentError(
            UnknownNameMessage("input", name, names));
      }
      if (inputs.size() > kMaxInputs) {
        return absl::InvalidArgumentError(
            absl::StrCat("reads more than ", kMaxInputs, " layers"));
      }
    }
    if (layer.input().empty()) inputs = before;
    for (std::string& input : inputs) expanded->add_input(std::move(input));
    if (!layer.share().empty() && scope.block != nullptr) {
      expanded->set_share(JoinNames(scope.use, layer.share()));
    }
    for (Attr& attr : *expanded->mutable_attr()) {
      if (attr.value_case() != Attr::kParameter) continue;
      const auto value = scope.values.find(attr.parameter());
      if (value == scope.values.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute '", attr.name(), "': ",
                         UnknownNameMessage("parameter", attr.parameter(),
                                            KeysOf(scope.values))));
      }
      const std::string name = attr.name();
      attr = value->second;
      attr.set_name(name);
    }
    return absl::OkStatus();
  }

  // Appends the layer, or those of the block that it uses; returns the name of
  // the output.
  absl::StatusOr<std::string> Append(const LayerSpec& layer,
                                     const Scope& scope) {
    const auto found = blocks_.find(layer.type());
    if (found == blocks_.end()) {
      if (!LayerRegistry::Find(layer.type()).ok()) {
        Names names = LayerRegistry::Names();
        for (const auto& [name, block] : blocks_) names.push_back(name);
        return absl::InvalidArgumentError(
            UnknownNameMessage("layer or block", layer.type(), names));
      }
      if (layers_.size() >= kMaxLayers) {
        return absl::InvalidArgumentError(
            absl::StrCat("the model has more than ", kMaxLayers, " layers"));
      }
      *layers_.Add() = layer;
      return layer.name();
    }
    const BlockSpec& block = *found->second;
    if (scope.depth == kMaxDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("blocks lie more than ", kMaxDepth,
                       " deep in each other; a block "
                       "cannot use itself"));
    }
    if (layer.name().empty()) {
      return absl::InvalidArgumentError("a use of a block needs a name");
    }
    if (!layer.share().empty()) {
      return absl::InvalidArgumentError(
          "a use of a block cannot share parameters; its layers can, with "
          "each other");
    }
    if (layer.has_split()) {
      return absl::InvalidArgumentError(
          "a use of a block cannot be split; its layers can");
    }
    Scope inner;
    inner.block = &block;
    inner.use = layer.name();
    inner.inputs.assign(layer.input().begin(), layer.input().end());
    inner.depth = scope.depth + 1;
    inner.freeze = layer.freeze();
    inner.device = layer.device();
    ASSIGN_OR_RETURN(inner.values, BindParameters(block, layer));
    return Expand(block.layer(), inner);
  }

  static absl::StatusOr<Values> BindParameters(const BlockSpec& block,
                                               const LayerSpec& use) {
    Values values;
    for (const Attr& parameter : block.parameter()) {
      values[parameter.name()] = parameter;
    }
    for (const Attr& attr : use.attr()) {
      const auto value = values.find(attr.name());
      if (value == values.end()) {
        return absl::InvalidArgumentError(
            UnknownNameMessage("parameter", attr.name(), KeysOf(values)));
      }
      value->second = attr;
    }
    for (const auto& [name, value] : values) {
      if (value.value_case() != Attr::VALUE_NOT_SET) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the block's parameter '", name, "' has no value: give it as attr"));
    }
    return values;
  }

  const ModelSpec& model_;
  std::map<std::string, const BlockSpec*> blocks_;
  Layers layers_;
};

}  // namespace

absl::Status ExpandBlocks(ModelSpec* model) {
  if (model->block().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Layers layers, BlockExpander(*model).Run());
  *model->mutable_layer() = std::move(layers);
  model->clear_block();
  return absl::OkStatus();
}

}  // namespace muster
