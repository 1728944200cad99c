#include "worker/input/input_threads.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

InputSpec Spec(const char* type) {
  InputSpec spec;
  spec.set_type(type);
  return spec;
}

TEST(InputThreadsTest, OneCopiesAndAsManyAsComputeDecode) {
  EXPECT_EQ(InputThreads(Spec("idx"), 4), 1);
  EXPECT_EQ(InputThreads(Spec("image_folder"), 4), 4);
  EXPECT_EQ(InputThreads(Spec("image_folder"), 64), 8);
  EXPECT_EQ(InputThreads(Spec("image_folder"), 0), 1);
  InputSpec mapped = Spec("idx");
  mapped.add_map()->set_type("random_flip");
  EXPECT_EQ(InputThreads(mapped, 3), 3);
}

TEST(InputThreadsTest, TheUserDecides) {
  InputSpec spec = Spec("image_folder");
  spec.set_threads(1);
  EXPECT_EQ(InputThreads(spec, 4), 1);
  spec = Spec("idx");
  spec.set_threads(20);
  EXPECT_EQ(InputThreads(spec, 4), 20);
}

}  // namespace
}  // namespace muster
