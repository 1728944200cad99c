#include "common/base/fingerprint.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

// Vectors of http://www.isthe.com/chongo/src/fnv/test_fnv.c: fingerprints are
// compared between machines and versions, so they must not change.
TEST(FingerprintTest, IsFnv1a) {
  EXPECT_EQ(Fingerprint64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(Fingerprint64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(Fingerprint64("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace muster
