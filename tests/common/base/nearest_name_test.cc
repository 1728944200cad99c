#include "common/base/nearest_name.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

const std::vector<std::string>& Layers() {
  static const auto& kLayers =
      *new std::vector<std::string>{"conv2d", "dense", "max_pool", "relu"};
  return kLayers;
}

TEST(NearestNameTest, FindsLikelySlips) {
  EXPECT_EQ(NearestName("dense2", Layers()), "dense");
  EXPECT_EQ(NearestName("densee", Layers()), "dense");
  EXPECT_EQ(NearestName("edns", Layers()), "");
  EXPECT_EQ(NearestName("maxpool", Layers()), "max_pool");
  EXPECT_EQ(NearestName("relu", Layers()), "relu");
}

TEST(NearestNameTest, OffersNothingForAnotherWord) {
  EXPECT_EQ(NearestName("batch_normalization", Layers()), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

TEST(NearestNameTest, MessageNamesAllThatIsKnown) {
  EXPECT_EQ(UnknownNameMessage("layer", "dens", Layers()),
            "unknown layer 'dens'; did you mean 'dense'? known: conv2d, "
            "dense, max_pool, relu");
  EXPECT_EQ(UnknownNameMessage("layer", "attention", Layers()),
            "unknown layer 'attention'; known: conv2d, dense, max_pool, relu");
}

}  // namespace
}  // namespace muster
