#include "worker/model/split_layers.h"

#include <cstdint>
#include <map>
#include <numeric>
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

// Whether it computes each channel by itself.
bool IsByChannel(const ProgramOp& op) {
  return std::holds_alternative<BatchNormStep>(op.desc) ||
         std::holds_alternative<ActivationDesc>(op.desc);
}

// Divides operations one after another. What is made in parts is joined before
// the first operation that reads the whole.
class Splitter {
 public:
  explicit Splitter(Program* program)
      : program_(*program), readers_(program->values.size(), 0) {
    for (const ProgramOp& op : program->ops) {
      for (const int src : op.srcs) ++readers_[src];
    }
  }

  // `runs`: those of its parts; empty if it has none of its own.
  void Add(ProgramOp op, const std::vector<int>& runs) {
    const auto src = in_parts_.find(op.srcs[0]);
    if (!runs.empty()) {
      JoinSources(op);
      AddParts(op, runs);
    } else if (src != in_parts_.end() && IsByChannel(op) &&
               readers_[op.srcs[0]] == 1) {
      AddPartsLike(op, src->second);
      in_parts_.erase(src);
    } else {
      JoinSources(op);
      ops_.push_back(std::move(op));
    }
  }
  std::vector<ProgramOp> Take() && { return std::move(ops_); }

 private:
  // A value that is made by several operations.
  struct InParts {
    // The last layer of those that made it.
    std::string layer;
    std::vector<ProgramOp> makers;
  };

  int NewValue(const Shape& shape) {
    program_.values.push_back(shape);
    return static_cast<int>(program_.values.size()) - 1;
  }

  void AddParts(const ProgramOp& op, const std::vector<int>& runs) {
    InParts& made = in_parts_[op.dst];
    made.layer = op.name;
    const int parts = std::accumulate(runs.begin(), runs.end(), 0);
    int begin = 0;
    for (const int run : runs) {
      ProgramOp part = op;
      int64_t* const channels = ChannelsOf(&part.desc);
      *channels = *channels / parts * run;
      part.part = begin;
      part.num_parts = run;
      part.parts = parts;
      part.dst = NewValue(std::visit(ShapeOfPart(), part.desc));
      begin += run;
      made.makers.push_back(part);
      ops_.push_back(std::move(part));
    }
  }

  void AddPartsLike(const ProgramOp& op, const InParts& srcs) {
    InParts& made = in_parts_[op.dst];
    made.layer = op.name;
    for (const ProgramOp& src : srcs.makers) {
      ProgramOp part = op;
      part.srcs = {src.dst};
      part.part = src.part;
      part.num_parts = src.num_parts;
      part.parts = src.parts;
      part.part_of = src.part_of.empty() ? src.name : src.part_of;
      if (auto* const step = std::get_if<BatchNormStep>(&part.desc)) {
        step->desc.channels = step->desc.channels / src.parts * src.num_parts;
      }
      part.dst = NewValue(program_.values[src.dst]);
      made.makers.push_back(part);
      ops_.push_back(std::move(part));
    }
  }

  void JoinSources(const ProgramOp& op) {
    for (const int src : op.srcs) {
      const auto found = in_parts_.find(src);
      if (found == in_parts_.end()) continue;
      ConcatDesc desc;
      ProgramOp whole;
      whole.name = found->second.layer;
      whole.dst = src;
      for (const ProgramOp& maker : found->second.makers) {
        whole.srcs.push_back(maker.dst);
        desc.srcs.push_back(program_.values[maker.dst]);
      }
      whole.desc = std::move(desc);
      ops_.push_back(std::move(whole));
      in_parts_.erase(found);
    }
  }

  Program& program_;
  // By value of the program as it was, the operations that read it.
  std::vector<int> readers_;
  // By value, those that are not joined yet.
  std::map<int, InParts> in_parts_;
  std::vector<ProgramOp> ops_;
};

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

void SplitLayers(
    absl::FunctionRef<std::vector<int>(absl::string_view layer)> runs_of,
    Program* program) {
  Splitter splitter(program);
  for (ProgramOp& op : program->ops) {
    const std::vector<int> runs =
        ChannelsOf(&op.desc) == nullptr ? std::vector<int>() : runs_of(op.name);
    splitter.Add(std::move(op), runs);
  }
  program->ops = std::move(splitter).Take();
}

}  // namespace muster
