#include "worker/client/joined_pieces.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/shared_memory/memory_segment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Pages of 64 KiB or less.
constexpr int64_t kPage = int64_t{64} << 10;

class JoinedPiecesTest : public testing::Test {
 protected:
  // Two segments of two pages, of which each byte is that of its page: "ab"
  // and "cd".
  JoinedPiecesTest() {
    for (const char* letters : {"ab", "cd"}) {
      absl::StatusOr<MemorySegment> segment = MemorySegment::Create(2 * kPage);
      EXPECT_THAT(segment, IsOk());
      std::memset(segment->data(), letters[0], kPage);
      std::memset(segment->data() + kPage, letters[1], kPage);
      segments_.push_back(*std::move(segment));
    }
  }
  TensorView Piece(int segment, int64_t page, int64_t size_bytes) {
    return {segments_[segment].data() + page * kPage, size_bytes};
  }

  std::vector<MemorySegment> segments_;
};

TEST_F(JoinedPiecesTest, LieOneAfterAnother) {
  const auto joined =
      JoinPieces({Piece(1, 1, kPage), Piece(0, 0, 2 * kPage), Piece(1, 0, 10)});
  ASSERT_THAT(joined, IsOk());
  const char* const data = joined->get();
  EXPECT_EQ(std::string(data, kPage), std::string(kPage, 'd'));
  EXPECT_EQ(std::string(data + kPage, kPage), std::string(kPage, 'a'));
  EXPECT_EQ(std::string(data + 2 * kPage, kPage), std::string(kPage, 'b'));
  EXPECT_EQ(std::string(data + 3 * kPage, 10), std::string(10, 'c'));
}

TEST_F(JoinedPiecesTest, HaveWhatIsWrittenLater) {
  const auto joined = JoinPieces({Piece(0, 0, kPage), Piece(1, 0, kPage)});
  ASSERT_THAT(joined, IsOk());
  segments_[1].data()[3] = 'x';
  EXPECT_EQ(joined->get()[kPage + 3], 'x');
}

TEST_F(JoinedPiecesTest, StayWhenThePiecesGo) {
  const auto joined = JoinPieces({Piece(0, 0, kPage), Piece(1, 0, kPage)});
  ASSERT_THAT(joined, IsOk());
  segments_.clear();
  EXPECT_EQ(joined->get()[0], 'a');
  EXPECT_EQ(joined->get()[kPage], 'c');
}

TEST_F(JoinedPiecesTest, WantPages) {
  for (const std::vector<TensorView>& pieces :
       {std::vector<TensorView>{Piece(0, 0, 100), Piece(1, 0, kPage)},
        std::vector<TensorView>{{segments_[0].data() + 64, kPage},
                                Piece(1, 0, kPage)},
        std::vector<TensorView>{Piece(0, 0, kPage), Piece(1, 0, 0)}}) {
    EXPECT_THAT(JoinPieces(pieces),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("which are not pages")));
  }
}

TEST_F(JoinedPiecesTest, WantMemoryThatIsShared) {
  std::vector<char> own(2 * kPage);
  const auto begin = reinterpret_cast<uintptr_t>(own.data());
  const char* const page = own.data() + (kPage - begin % kPage) % kPage;
  EXPECT_THAT(JoinPieces({Piece(0, 0, kPage), {page, kPage}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cannot be mapped twice")));
}

}  // namespace
}  // namespace muster
