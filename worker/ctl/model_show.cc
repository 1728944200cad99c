// musterctl model show: the layers of a training, blocks expanded.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/backend/device_name.h"
#include "worker/backend/operation.h"
#include "worker/ctl/training_flag.h"
#include "worker/ctl/verb.h"
#include "worker/layer/layer_operation.h"
#include "worker/model/model_graph.h"
#include "worker/model/split_check.h"

namespace muster {
namespace {

// The floating-point operations of a product of matrices: an addition and a
// multiplication a term. What only passes over its elements counts as none.
struct ForwardFlops {
  double operator()(const Conv2dDesc& desc) const {
    const double terms = static_cast<double>(desc.src_channels / desc.groups) *
                         desc.window.kernel_h * desc.window.kernel_w;
    return 2 * terms * desc.dst_shape().num_elements();
  }
  double operator()(const DenseDesc& desc) const {
    return 2.0 * desc.batch * desc.src_features * desc.dst_features;
  }
  template <typename Desc>
  double operator()(const Desc& /*desc*/) const {
    return 0;
  }
};

double FlopsOf(const ModelGraph::Node& node) {
  double flops = 0;
  if (node.layer == nullptr) return flops;
  for (const LayerOperation& operation : node.layer->Lower(1)) {
    flops += std::visit(ForwardFlops(), operation.desc);
  }
  return flops;
}

// The rows of the table, each of the same number of cells.
using Cells = std::vector<std::vector<std::string>>;

// Text columns to the left, numbers (from column `first_number`) to the right.
std::string Align(const Cells& rows, size_t first_number) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&text, i == 0 ? "" : "  ",
                      i < first_number ? absl::StrCat(row[i], padding)
                                       : absl::StrCat(padding, row[i]));
    }
    text.append("\n");
  }
  return text;
}

// A column that says which layers are frozen, and how many values in all; none
// if nothing is. `rows` are a title, one a node, and the sums.
void AddFrozen(const ModelGraph& graph, Cells* rows) {
  int64_t values = 0;
  for (const ModelGraph::Parameter& parameter : graph.parameters()) {
    if (parameter.kind == FROZEN) values += parameter.shape.num_elements();
  }
  if (values == 0) return;
  rows->front().push_back("frozen");
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::vector<int>& own = graph.nodes()[i].parameters;
    const auto frozen = std::count_if(own.begin(), own.end(), [&](int p) {
      return graph.parameters()[p].kind == FROZEN;
    });
    (*rows)[i + 1].push_back(frozen == 0            ? ""
                             : frozen == own.size() ? "yes"
                                                    : "in part");
  }
  rows->back().push_back(absl::StrCat(values));
}

// "cpu:1 in 2 parts by inputs cpu:0,cpu:1", as far as the layer says so.
std::string DescribeDevices(const LayerSpec& layer, std::string device) {
  if (!layer.has_split()) return device;
  absl::StrAppend(&device, device.empty() ? "" : " ", "in ",
                  layer.split().parts(), " parts",
                  layer.split().by() == INPUTS ? " by inputs" : "");
  if (layer.split().devices().empty()) return device;
  return absl::StrCat(
      device, " ",
      absl::StrJoin(layer.split().devices(), ",",
                    [](std::string* out, const std::string& part) {
                      out->append(CanonicalDevice(part));
                    }));
}

// A column of the devices that layers name; none if no layer does.
void AddDevices(const ModelSpec& spec, const ModelGraph& graph, Cells* rows) {
  std::vector<std::string> cells = {"device", ""};
  bool is_empty = true;
  for (int i = 0; i < spec.layer_size(); ++i) {
    cells.push_back(
        DescribeDevices(spec.layer(i), graph.nodes()[i + 1].device));
    is_empty &= cells.back().empty();
  }
  cells.push_back("");
  if (is_empty) return;
  for (size_t i = 0; i < cells.size(); ++i) {
    (*rows)[i].push_back(std::move(cells[i]));
  }
}

std::string DescribeModel(const ModelSpec& spec, const ModelGraph& graph) {
  Cells rows = {{"layer", "type", "reads", "makes", "parameters", "FLOPs"}};
  int64_t total_parameters = 0;
  double total_flops = 0;
  std::set<int> counted;
  for (const ModelGraph::Node& node : graph.nodes()) {
    std::vector<std::string> reads;
    for (const int input : node.inputs) {
      reads.push_back(graph.nodes()[input].name);
    }
    // Shared ones are those of the first layer that has them.
    int64_t parameters = 0;
    for (const int i : node.parameters) {
      if (!counted.insert(i).second) continue;
      parameters += graph.parameters()[i].shape.num_elements();
    }
    const double flops = FlopsOf(node);
    rows.push_back({node.name, node.type, absl::StrJoin(reads, ","),
                    node.shape.ToString(), absl::StrCat(parameters),
                    absl::StrFormat("%.0f", flops)});
    total_parameters += parameters;
    total_flops += flops;
  }
  rows.push_back({"all", "", "", "", absl::StrCat(total_parameters),
                  absl::StrFormat("%.0f", total_flops)});
  AddDevices(spec, graph, &rows);
  AddFrozen(graph, &rows);
  return Align(rows, /*first_number=*/4);
}

absl::Status Show(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const TrainingSpec training, LoadTrainingOf(call));
  ASSIGN_OR_RETURN(const ModelGraph graph,
                   ModelGraph::Create(training.model()));
  RETURN_IF_ERROR(CheckSplits(training.model(), graph));
  result->out = DescribeModel(training.model(), graph);
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "model show",
    {"",
     "prints the layers of a training with shapes, parameters and FLOPs.\n"
     "  Of one example: what each layer reads and makes, and the additions "
     "and\n"
     "  multiplications of convolutions and dense layers, forward. Layers "
     "that\n"
     "  are frozen or have a device are marked.",
     {{"training", "The file with the training spec."},
      {"set", "Overrides a field of it; may be given several times."}},
     0,
     0,
     &Show});

}  // namespace
}  // namespace muster
