#include "common/tensor/aligned_places.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

TEST(AlignedPlacesTest, BeginsEachPieceAtTheNextMultipleOfTheAlignment) {
  AlignedPlaces places;
  EXPECT_EQ(places.Add(1), 0);
  EXPECT_EQ(places.Add(64), 64);
  EXPECT_EQ(places.Add(0), 128);
  EXPECT_EQ(places.Add(65), 128);
  EXPECT_EQ(places.size_bytes(), 256);
}

TEST(AlignedPlacesTest, APieceToBeMappedBeginsAtAPage) {
  AlignedPlaces places;
  EXPECT_EQ(places.AddAtPage(3), 0);
  EXPECT_EQ(places.AddAtPage(100), 65536);
  EXPECT_EQ(places.Add(1), 65536 + 128);
  EXPECT_EQ(places.size_bytes(), 65536 + 192);
}

TEST(PlaceSpansTest, AreApartAndZero) {
  AlignedBuffer memory;
  const std::vector<absl::Span<float>> spans =
      PlaceSpans<float>({3, 16, 1}, &memory);
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_THAT(spans[0], SizeIs(3));
  EXPECT_EQ(spans[1].data() - spans[0].data(), 16);
  EXPECT_EQ(spans[2].data() - spans[1].data(), 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(spans[2].data()) % 64, 0);
  EXPECT_THAT(spans[1], Each(0.0f));
  EXPECT_EQ(memory.size_bytes(), 3 * 64);
}

}  // namespace
}  // namespace muster
