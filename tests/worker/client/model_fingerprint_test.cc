#include "worker/client/model_fingerprint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

TensorDef Tensor(const std::string& name, int64_t size) {
  TensorDef tensor;
  tensor.set_name(name);
  tensor.add_shape(size);
  return tensor;
}

TEST(ModelFingerprintTest, IsAFunctionOfItsArguments) {
  const std::vector<TensorDef> tensors = {Tensor("a", 1), Tensor("b", 2)};
  EXPECT_EQ(ModelFingerprint(tensors, {}), ModelFingerprint(tensors, {}));
  EXPECT_NE(ModelFingerprint({}, {}), 0);
}

TEST(ModelFingerprintTest, DiffersByNameShapeOrderKindDecayAndOptimizer) {
  const std::vector<TensorDef> tensors = {Tensor("a", 1), Tensor("b", 2)};
  const uint64_t fingerprint = ModelFingerprint(tensors, {});
  EXPECT_NE(fingerprint,
            ModelFingerprint({Tensor("a", 1), Tensor("c", 2)}, {}));
  EXPECT_NE(fingerprint,
            ModelFingerprint({Tensor("a", 1), Tensor("b", 3)}, {}));
  EXPECT_NE(fingerprint,
            ModelFingerprint({Tensor("b", 2), Tensor("a", 1)}, {}));
  std::vector<TensorDef> state = tensors;
  state[1].set_kind(STATE);
  EXPECT_NE(fingerprint, ModelFingerprint(state, {}));
  std::vector<TensorDef> slower = state;
  slower[1].set_decay(0.01F);
  EXPECT_NE(ModelFingerprint(state, {}), ModelFingerprint(slower, {}));
  OptimizerSpec adam;
  adam.set_name("adam");
  EXPECT_NE(fingerprint, ModelFingerprint(tensors, adam));
}

}  // namespace
}  // namespace muster
