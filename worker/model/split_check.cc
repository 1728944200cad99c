#include "worker/model/split_check.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/backend/device_name.h"
#include "worker/layer/layer_operation.h"
#include "worker/model/channel_parts.h"

namespace muster {
namespace {

using Node = ModelGraph::Node;

absl::Status Refuse(const LayerSpec& layer, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "layer '", layer.name(), "' (", layer.type(), "): split: ", why));
}

absl::Status CheckParts(const LayerSpec& layer) {
  const int parts = layer.split().parts();
  if (parts < 2) {
    return Refuse(layer,
                  absl::StrCat("parts must be 2 or more, found ", parts));
  }
  const int devices = layer.split().devices_size();
  if (devices == 0 || devices == parts) return absl::OkStatus();
  return Refuse(layer, absl::StrCat("it has ", parts, " parts and ", devices,
                                    " devices; give one a part, or none"));
}

absl::Status CheckChannels(const LayerSpec& layer, const Node& node) {
  for (LayerOperation& operation : node.layer->Lower(/*batch_size=*/1)) {
    const ChannelFields fields = ChannelFieldsOf(&operation.desc);
    if (fields.outputs == nullptr) continue;
    const bool reads = layer.split().by() == INPUTS;
    const int64_t channels = reads ? *fields.inputs : *fields.outputs;
    if (channels % layer.split().parts() == 0) return absl::OkStatus();
    return Refuse(layer,
                  absl::StrCat("its ", channels, reads ? " input" : " output",
                               " channels cannot be divided into ",
                               layer.split().parts(), " equal parts"));
  }
  return Refuse(layer,
                "only dense layers and convolutions without groups can be "
                "divided into parts; leave it out");
}

absl::Status CheckOwner(const LayerSpec& layer, const Node& node,
                        const ModelGraph& graph) {
  for (const Node& other : graph.nodes()) {
    if (&other == &node || other.parameters.empty() ||
        other.parameters != node.parameters) {
      continue;
    }
    return Refuse(layer,
                  absl::StrCat("it has its parameters with '", other.name,
                               "', so it cannot be divided"));
  }
  return absl::OkStatus();
}

std::string DevicesOf(const LayerSpec& layer) {
  if (layer.split().devices().empty()) return "no devices";
  return absl::StrJoin(layer.split().devices(), ",",
                       [](std::string* out, const std::string& device) {
                         out->append(CanonicalDevice(device));
                       });
}

// Whether what it makes of a source in parts can be made in parts, too.
bool FollowsParts(const Node& node, const Shape& src, int parts) {
  std::vector<int64_t> batch = {1};
  batch.insert(batch.end(), src.dims().begin(), src.dims().end());
  const auto shape = Shape::Create(batch);
  if (!shape.ok()) return false;
  for (LayerOperation& operation : node.layer->Lower(/*batch_size=*/1)) {
    if (!NarrowToChannels(*shape, /*count=*/1, parts, &operation.desc)) {
      return false;
    }
  }
  return true;
}

// Checks the source of a layer that is divided by its inputs.
class SourceCheck {
 public:
  SourceCheck(const ModelSpec& spec, const ModelGraph& graph)
      : spec_(spec), graph_(graph), readers_(graph.nodes().size(), 0) {
    for (const Node& node : graph.nodes()) {
      for (const int input : node.inputs) ++readers_[input];
    }
  }

  // Goes back to the layer that makes the parts that node `index` reads.
  absl::Status Check(int index) const {
    const LayerSpec& layer = spec_.layer(index - 1);
    const int parts = layer.split().parts();
    int at = graph_.nodes()[index].inputs[0];
    for (; at > 0 && !spec_.layer(at - 1).has_split(); at = SourceOf(at)) {
      RETURN_IF_ERROR(CheckReaders(layer, at));
      const Node& node = graph_.nodes()[at];
      if (node.inputs.size() == 1 &&
          FollowsParts(node, graph_.nodes()[SourceOf(at)].shape, parts)) {
        continue;
      }
      return RefuseSource(layer, absl::StrCat("'", node.name, "' (", node.type,
                                              ") is not in parts"));
    }
    if (at == 0) return RefuseSource(layer, "the model's input is whole");
    RETURN_IF_ERROR(CheckReaders(layer, at));
    return CheckAlike(layer, spec_.layer(at - 1));
  }

 private:
  int SourceOf(int index) const { return graph_.nodes()[index].inputs[0]; }

  static absl::Status RefuseSource(const LayerSpec& layer,
                                   absl::string_view found) {
    return Refuse(
        layer,
        absl::StrCat(
            "by INPUTS it reads the parts of a layer that is divided alike by "
            "its OUTPUTS, with nothing but activations, dropout, batch norms, "
            "pools and flatten between them; ",
            found));
  }

  absl::Status CheckReaders(const LayerSpec& layer, int index) const {
    if (readers_[index] == 1) return absl::OkStatus();
    return RefuseSource(
        layer, absl::StrCat("'", graph_.nodes()[index].name, "' is read by ",
                            readers_[index], " layers"));
  }

  static absl::Status CheckAlike(const LayerSpec& layer,
                                 const LayerSpec& source) {
    const SplitSpec& split = source.split();
    if (split.by() != OUTPUTS) {
      return RefuseSource(layer, absl::StrCat("'", source.name(),
                                              "' is divided by its INPUTS"));
    }
    if (split.parts() != layer.split().parts()) {
      return RefuseSource(
          layer, absl::StrCat("it has ", layer.split().parts(), " parts, '",
                              source.name(), "' has ", split.parts()));
    }
    if (layer.split().devices().empty() ||
        DevicesOf(layer) == DevicesOf(source)) {
      return absl::OkStatus();
    }
    return RefuseSource(
        layer,
        absl::StrCat("its parts are on ", DevicesOf(layer), ", those of '",
                     source.name(), "' on ", DevicesOf(source),
                     "; leave its devices out, and it has the same"));
  }

  const ModelSpec& spec_;
  const ModelGraph& graph_;
  // By node, how many read it.
  std::vector<int> readers_;
};

}  // namespace

absl::Status CheckSplits(const ModelSpec& spec, const ModelGraph& graph) {
  const SourceCheck sources(spec, graph);
  for (int i = 0; i < spec.layer_size(); ++i) {
    const LayerSpec& layer = spec.layer(i);
    if (!layer.has_split()) continue;
    // Node 0 is the input.
    const Node& node = graph.nodes()[i + 1];
    RETURN_IF_ERROR(CheckParts(layer));
    RETURN_IF_ERROR(CheckChannels(layer, node));
    RETURN_IF_ERROR(CheckOwner(layer, node, graph));
    if (layer.split().by() == INPUTS) RETURN_IF_ERROR(sources.Check(i + 1));
  }
  return absl::OkStatus();
}

}  // namespace muster
