#include "worker/model/split_layers.h"

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/backend/operation.h"
#include "worker/layer/layer_operation.h"

namespace muster {
namespace {

// The output channels of an operation that can be divided by them; null for
// others.
struct DividedChannels {
  int64_t* operator()(Conv2dDesc& desc) const {
    return desc.groups == 1 ? &desc.dst_channels : nullptr;
  }
  int64_t* operator()(DenseDesc& desc) const { return &desc.dst_features; }
  template <typename Desc>
  int64_t* operator()(Desc& /*desc*/) const {
    return nullptr;
  }
};

struct ShapeOfPart {
  Shape operator()(const Conv2dDesc& desc) const { return desc.dst_shape(); }
  Shape operator()(const DenseDesc& desc) const { return desc.dst_shape(); }
  template <typename Desc>
  Shape operator()(const Desc& /*desc*/) const {
    return Shape();
  }
};

int64_t* ChannelsOf(OperationDesc* desc) {
  return std::visit(DividedChannels(), *desc);
}

absl::Status Refuse(const LayerSpec& layer, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "layer '", layer.name(), "' (", layer.type(), "): split: ", why));
}

absl::Status CheckChannels(const LayerSpec& layer,
                           const ModelGraph::Node& node) {
  for (LayerOperation& operation : node.layer->Lower(/*batch_size=*/1)) {
    const int64_t* const channels = ChannelsOf(&operation.desc);
    if (channels == nullptr) continue;
    if (*channels % layer.split().parts() == 0) return absl::OkStatus();
    return Refuse(layer, absl::StrCat("its ", *channels,
                                      " output channels cannot be divided "
                                      "into ",
                                      layer.split().parts(), " equal parts"));
  }
  return Refuse(layer,
                "only dense layers and convolutions without groups can be "
                "divided into parts; leave it out");
}

absl::Status CheckOwner(const LayerSpec& layer, const ModelGraph::Node& node,
                        const ModelGraph& graph) {
  for (const ModelGraph::Node& other : graph.nodes()) {
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

// The operation that makes the k-th part, and its value.
ProgramOp PartOf(const ProgramOp& op, int part, int parts, Program* program) {
  ProgramOp made = op;
  *ChannelsOf(&made.desc) /= parts;
  made.part = part;
  made.parts = parts;
  made.dst = static_cast<int>(program->values.size());
  program->values.push_back(std::visit(ShapeOfPart(), made.desc));
  return made;
}

void AddParts(ProgramOp op, int parts, Program* program,
              std::vector<ProgramOp>* ops) {
  ConcatDesc desc;
  ProgramOp whole;
  whole.name = op.name;
  whole.dst = op.dst;
  for (int part = 0; part < parts; ++part) {
    ops->push_back(PartOf(op, part, parts, program));
    whole.srcs.push_back(ops->back().dst);
    desc.srcs.push_back(program->values[ops->back().dst]);
  }
  whole.desc = std::move(desc);
  ops->push_back(std::move(whole));
}

}  // namespace

absl::Status CheckSplit(const LayerSpec& layer, const ModelGraph& graph) {
  const int parts = layer.split().parts();
  if (parts < 2) {
    return Refuse(layer,
                  absl::StrCat("parts must be 2 or more, found ", parts));
  }
  const int devices = layer.split().devices_size();
  if (devices != 0 && devices != parts) {
    return Refuse(layer, absl::StrCat("it has ", parts, " parts and ", devices,
                                      " devices; give one a part, or none"));
  }
  const absl::Span<const ModelGraph::Node> nodes = graph.nodes();
  const auto node =
      absl::c_find_if(nodes, [&layer](const ModelGraph::Node& candidate) {
        return candidate.name == layer.name();
      });
  RETURN_IF_ERROR(CheckChannels(layer, *node));
  return CheckOwner(layer, *node, graph);
}

void SplitLayers(absl::FunctionRef<int(absl::string_view layer)> parts_of,
                 Program* program) {
  std::vector<ProgramOp> ops;
  for (ProgramOp& op : program->ops) {
    const int parts = ChannelsOf(&op.desc) == nullptr ? 1 : parts_of(op.name);
    if (parts == 1) {
      ops.push_back(std::move(op));
    } else {
      AddParts(std::move(op), parts, program, &ops);
    }
  }
  program->ops = std::move(ops);
}

}  // namespace muster
