#include "common/rpc/tcp/frame_receiver.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/rpc/tcp/memory_channel.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string BytesOf(uint64_t call, const std::string& fields,
                    const std::string& data) {
  FrameHeader header;
  header.call = call;
  header.fields_bytes = static_cast<uint32_t>(fields.size());
  header.data_bytes = data.size();
  return EncodeFrameHeader(header) + fields + data;
}

// Memory in pieces of these sizes, which is wanted for so many writes.
class TestPlace : public ValuePlace {
 public:
  explicit TestPlace(const std::vector<size_t>& sizes, int wanted = 1 << 30)
      : wanted_(wanted) {
    for (const size_t size : sizes) memory_.emplace_back(size, '.');
    for (std::string& piece : memory_) pieces_.push_back(absl::MakeSpan(piece));
  }

  absl::Span<const absl::Span<char>> PiecesFor(size_t size_bytes) override {
    if (size_bytes != bytes().size()) return {};
    return pieces_;
  }
  bool WriteIfWanted(absl::FunctionRef<void()> write) override {
    if (wanted_ == 0) return false;
    --wanted_;
    write();
    return true;
  }

  std::string bytes() const {
    std::string all;
    for (const std::string& piece : memory_) all += piece;
    return all;
  }

 private:
  int wanted_;
  std::vector<std::string> memory_;
  std::vector<absl::Span<char>> pieces_;
};

class FrameReceiverTest : public testing::Test {
 protected:
  // The next frame, with as many calls as it takes.
  ReceivedFrame Await(MemoryChannel* channel) {
    for (int i = 0; i < 1'000'000; ++i) {
      auto frame = receiver_.Next(channel);
      if (!frame.ok() || frame->has_value()) {
        EXPECT_THAT(frame, IsOk());
        return frame.ok() ? **std::move(frame) : ReceivedFrame();
      }
    }
    ADD_FAILURE() << "no frame";
    return {};
  }

  void ExpectNone(MemoryChannel* channel) {
    const auto frame = receiver_.Next(channel);
    ASSERT_THAT(frame, IsOk());
    EXPECT_FALSE(frame->has_value());
  }

  BufferPool pool_;
  std::shared_ptr<ValuePlace> place_;
  int asked_ = 0;
  FrameReceiver receiver_{&pool_, [this](const FrameHeader&) {
                            ++asked_;
                            return place_;
                          }};
};

TEST_F(FrameReceiverTest, ByteAfterByte_MakesTheFrames) {
  MemoryChannel channel(BytesOf(1, "fields", "") + BytesOf(2, "", "tensors") +
                            BytesOf(3, "", "") + BytesOf(4, "both", "of it"),
                        [n = 0]() mutable { return ++n % 2; });
  ReceivedFrame frame = Await(&channel);
  EXPECT_EQ(frame.header.call, 1);
  EXPECT_EQ(frame.fields, "fields");
  EXPECT_EQ(frame.data(), "");
  EXPECT_EQ(frame.buffer, nullptr);
  frame = Await(&channel);
  EXPECT_EQ(frame.header.call, 2);
  EXPECT_EQ(frame.fields, "");
  EXPECT_EQ(frame.data(), "tensors");
  EXPECT_FALSE(frame.is_placed);
  EXPECT_EQ(Await(&channel).header.call, 3);
  frame = Await(&channel);
  EXPECT_EQ(frame.fields, "both");
  EXPECT_EQ(frame.data(), "of it");
  EXPECT_EQ(asked_, 2) << "for a place, though there are no data";
  ExpectNone(&channel);
}

TEST_F(FrameReceiverTest, RandomSizesInRandomPieces_ComeAsTheyWereSent) {
  std::mt19937 random(7);
  std::vector<std::pair<std::string, std::string>> frames;
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    const size_t fields = random() % 3 == 0 ? 0 : random() % 2000;
    const size_t data = random() % 3 == 0 ? 0 : random() % 300'000;
    frames.emplace_back(std::string(fields, static_cast<char>(i)),
                        std::string(data, static_cast<char>(-i)));
    bytes += BytesOf(i + 1, frames.back().first, frames.back().second);
  }
  MemoryChannel channel(bytes,
                        [&random] { return random() % (1 << random() % 20); });
  for (int i = 0; i < 50; ++i) {
    // Of several pieces, some of them empty, or another size.
    const size_t size = frames[i].second.size();
    place_ = i % 2 == 0
                 ? nullptr
                 : std::make_shared<TestPlace>(std::vector<size_t>{
                       size / 3, 0, size / 2, size - size / 3 - size / 2});
    const ReceivedFrame frame = Await(&channel);
    EXPECT_EQ(frame.header.call, i + 1);
    EXPECT_EQ(frame.fields, frames[i].first);
    EXPECT_EQ(frame.is_placed, place_ != nullptr && size > 0);
    const std::string data =
        frame.is_placed ? static_cast<TestPlace*>(place_.get())->bytes()
                        : std::string(frame.data());
    EXPECT_TRUE(data == frames[i].second) << "data of frame " << i;
  }
}

TEST_F(FrameReceiverTest, PlaceForAnotherSize_IsLeftAlone) {
  const auto place = std::make_shared<TestPlace>(std::vector<size_t>{3});
  place_ = place;
  MemoryChannel channel(BytesOf(1, "", "four"));
  const ReceivedFrame frame = Await(&channel);
  EXPECT_FALSE(frame.is_placed);
  EXPECT_EQ(frame.data(), "four");
  EXPECT_EQ(place->bytes(), "...");
  place_ = nullptr;
  EXPECT_EQ(place.use_count(), 1) << "it is held beyond the frame";
}

TEST_F(FrameReceiverTest, PlaceNoLongerWanted_RestIsWasted) {
  const std::string data(200'000, 'x');
  const auto place = std::make_shared<TestPlace>(
      std::vector<size_t>{100'000, 100'000}, /*wanted=*/2);
  place_ = place;
  MemoryChannel channel(BytesOf(1, "f", data), [] { return 50'000; });
  channel.Append(BytesOf(2, "next", ""));
  const ReceivedFrame frame = Await(&channel);
  EXPECT_TRUE(frame.is_wasted);
  EXPECT_FALSE(frame.is_placed);
  EXPECT_EQ(frame.fields, "f");
  EXPECT_EQ(frame.data(), "");
  EXPECT_EQ(place->bytes(),
            std::string(100'000, 'x') + std::string(100'000, '.'));
  const ReceivedFrame next = Await(&channel);
  EXPECT_FALSE(next.is_wasted);
  EXPECT_EQ(next.fields, "next");
}

// The second read begins in the middle of data, the first in that of fields.
TEST_F(FrameReceiverTest, Abandoned_GivesTheBufferBackAndReadsOn) {
  for (const size_t first : {40, 60}) {
    const std::string bytes = BytesOf(5, "twelve bytes", std::string(90, 'd'));
    MemoryChannel channel(bytes.substr(0, first));
    ExpectNone(&channel);
    receiver_.Abandon(4);
    receiver_.Abandon(5);
    EXPECT_EQ(pool_.idle_bytes(), first == 60 ? 4096 : 0);
    channel.Append(bytes.substr(first) + BytesOf(6, "next", "data"));
    const ReceivedFrame frame = Await(&channel);
    EXPECT_TRUE(frame.is_wasted);
    EXPECT_EQ(frame.fields, "twelve bytes");
    EXPECT_EQ(frame.data(), "");
    const ReceivedFrame next = Await(&channel);
    EXPECT_FALSE(next.is_wasted);
    EXPECT_EQ(next.data(), "data");
  }
  EXPECT_EQ(asked_, 3) << "for the place of an abandoned call";
}

TEST_F(FrameReceiverTest, AbandoningAnotherCall_ChangesNothing) {
  const std::string bytes = BytesOf(5, "f", "data");
  MemoryChannel channel(bytes.substr(0, 34));
  ExpectNone(&channel);
  receiver_.Abandon(0);
  receiver_.Abandon(6);
  channel.Append(bytes.substr(34));
  EXPECT_EQ(Await(&channel).data(), "data");
}

TEST_F(FrameReceiverTest, LengthsOverTheBounds_AllocateNothing) {
  pool_.Take(1);
  const size_t idle = pool_.idle_bytes();
  for (const uint64_t size : {uint64_t{kMaxPartBytes} + 1, uint64_t{1} << 40}) {
    FrameHeader header;
    header.data_bytes = size;
    MemoryChannel channel(EncodeFrameHeader(header) + "data");
    FrameReceiver receiver(&pool_, nullptr);
    EXPECT_THAT(
        receiver.Next(&channel),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most")));
    EXPECT_EQ(pool_.idle_bytes(), idle);
    EXPECT_EQ(channel.given(), kFrameHeaderBytes);
  }
}

TEST_F(FrameReceiverTest, ClosedInTheMiddle_IsTheChannelsError) {
  const std::string bytes = BytesOf(5, "f", "data");
  for (size_t size = 0; size < bytes.size(); ++size) {
    MemoryChannel channel(bytes.substr(0, size));
    channel.Close();
    FrameReceiver receiver(&pool_, nullptr);
    EXPECT_THAT(receiver.Next(&channel),
                StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_F(FrameReceiverTest, LargestFrame_TakesThreeReads) {
  MemoryChannel channel(BytesOf(5, "f", std::string(kMaxPartBytes, 'd')));
  EXPECT_EQ(Await(&channel).data().size(), kMaxPartBytes);
  EXPECT_EQ(channel.receives(), 3);
}

}  // namespace
}  // namespace muster
