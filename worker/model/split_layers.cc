#include "worker/model/split_layers.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "worker/backend/operation.h"
#include "worker/layer/layer_operation.h"
#include "worker/model/channel_parts.h"

namespace muster {
namespace {

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

  // `split`: null if it has none.
  void Add(ProgramOp op, const LayerSplit* split) {
    const auto src = in_parts_.find(op.srcs[0]);
    const bool reads_parts =
        src != in_parts_.end() && readers_[op.srcs[0]] == 1;
    if (split != nullptr && split->by == INPUTS && reads_parts) {
      AddSummands(op, src->second);
      in_parts_.erase(src);
    } else if (split != nullptr && split->by == OUTPUTS) {
      JoinSources(op);
      AddParts(op, split->runs);
    } else if (reads_parts && Follows(op, src->second)) {
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

  // Appends an operation that makes a new value.
  const ProgramOp& Append(ProgramOp op, const Shape& shape) {
    op.dst = NewValue(shape);
    ops_.push_back(std::move(op));
    return ops_.back();
  }

  void AddParts(const ProgramOp& op, const std::vector<int>& runs) {
    InParts& made = in_parts_[op.dst];
    made.layer = op.name;
    const int parts = std::accumulate(runs.begin(), runs.end(), 0);
    int begin = 0;
    for (const int run : runs) {
      ProgramOp part = op;
      int64_t* const channels = ChannelFieldsOf(&part.desc).outputs;
      *channels = *channels / parts * run;
      part.part = begin;
      part.num_parts = run;
      part.parts = parts;
      begin += run;
      made.makers.push_back(
          Append(std::move(part),
                 ShapeOfChannels(program_.values[op.dst], run, parts)));
    }
  }

  // The operation on one of them, where that was made.
  static ProgramOp PartLike(const ProgramOp& op, const ProgramOp& src) {
    ProgramOp part = op;
    part.srcs = {src.dst};
    part.part = src.part;
    part.num_parts = src.num_parts;
    part.parts = src.parts;
    part.part_of = src.part_of.empty() ? src.name : src.part_of;
    return part;
  }

  bool Follows(const ProgramOp& op, const InParts& srcs) const {
    const ProgramOp& first = srcs.makers.front();
    OperationDesc desc = op.desc;
    return op.srcs.size() == 1 &&
           NarrowToChannels(program_.values[op.srcs[0]], first.num_parts,
                            first.parts, &desc);
  }

  void AddPartsLike(const ProgramOp& op, const InParts& srcs) {
    InParts& made = in_parts_[op.dst];
    made.layer = op.name;
    for (const ProgramOp& src : srcs.makers) {
      ProgramOp part = PartLike(op, src);
      NarrowToChannels(program_.values[op.srcs[0]], src.num_parts, src.parts,
                       &part.desc);
      made.makers.push_back(Append(
          std::move(part),
          ShapeOfChannels(program_.values[op.dst], src.num_parts, src.parts)));
    }
  }

  void AddSummands(const ProgramOp& op, const InParts& srcs) {
    const Shape shape = program_.values[op.dst];
    ProgramOp sum;
    sum.name = op.name;
    sum.dst = op.dst;
    for (const ProgramOp& src : srcs.makers) {
      ProgramOp part = PartLike(op, src);
      part.part_dim = 1;
      const ChannelFields fields = ChannelFieldsOf(&part.desc);
      *fields.inputs = *fields.inputs / src.parts * src.num_parts;
      *fields.relu = false;
      if (!sum.srcs.empty()) {
        *fields.has_bias = false;
        part.parameters.resize(1);
      }
      sum.srcs.push_back(Append(std::move(part), shape).dst);
    }
    sum.desc = AddDesc{static_cast<int>(sum.srcs.size()), shape};
    OperationDesc desc = op.desc;
    if (!*ChannelFieldsOf(&desc).relu) {
      ops_.push_back(std::move(sum));
      return;
    }
    ProgramOp relu;
    relu.name = op.name;
    relu.desc = ActivationDesc{ActivationKind::kRelu};
    relu.dst = op.dst;
    relu.srcs = {Append(std::move(sum), shape).dst};
    ops_.push_back(std::move(relu));
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

void SplitLayers(const std::map<std::string, LayerSplit>& splits,
                 Program* program) {
  Splitter splitter(program);
  for (ProgramOp& op : program->ops) {
    const auto found = splits.find(op.name);
    const bool is_divided =
        found != splits.end() && ChannelFieldsOf(&op.desc).outputs != nullptr;
    splitter.Add(std::move(op), is_divided ? &found->second : nullptr);
  }
  program->ops = std::move(splitter).Take();
}

}  // namespace muster
