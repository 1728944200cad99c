#include "worker/model/graph_def.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using testing::ElementsAre;

GraphDef Make(const std::vector<std::string>& devices) {
  const auto model = ModelGraph::Create(ParseModel(R"pb(
    input_shape: [ 1, 2, 3 ]
    layer { name: "flatten" type: "flatten" }
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 6 }
    }
    layer {
      name: "sum"
      type: "add"
      input: [ "logits", "flatten" ]
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  )pb"));
  EXPECT_THAT(model, IsOk());
  return MakeGraphDef(*model, /*batch_size=*/5, devices);
}

std::vector<int64_t> OutputShape(const NodeDef& node) {
  std::vector<int64_t> sizes;
  for (const auto& dim :
       node.attr().at("_output_shapes").list().shape(0).dim()) {
    sizes.push_back(dim.size());
  }
  return sizes;
}

TEST(GraphDefTest, HasANodeForEachLayer) {
  const GraphDef graph = Make({"cpu:0"});
  ASSERT_EQ(graph.node_size(), 5);
  EXPECT_EQ(graph.node(0).name(), "input");
  EXPECT_EQ(graph.node(0).op(), "input");
  EXPECT_THAT(OutputShape(graph.node(0)), ElementsAre(5, 1, 2, 3));
  const NodeDef& sum = graph.node(3);
  EXPECT_EQ(sum.name(), "sum");
  EXPECT_EQ(sum.op(), "add");
  EXPECT_EQ(sum.device(), "/device:CPU:0");
  EXPECT_THAT(sum.input(), ElementsAre("logits", "flatten"));
  EXPECT_THAT(OutputShape(sum), ElementsAre(5, 6));
}

TEST(GraphDefTest, EachTowerHasItsNodes) {
  const GraphDef graph = Make({"cpu:0", "cuda:1"});
  ASSERT_EQ(graph.node_size(), 10);
  EXPECT_EQ(graph.node(2).name(), "tower_0/logits");
  const NodeDef& second = graph.node(7);
  EXPECT_EQ(second.name(), "tower_1/logits");
  EXPECT_EQ(second.device(), "/device:CUDA:1");
  EXPECT_THAT(second.input(), ElementsAre("tower_1/flatten"));
}

}  // namespace
}  // namespace muster
