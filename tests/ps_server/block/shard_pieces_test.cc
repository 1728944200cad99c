// The small parts of a shard: ranges, runs, blocks, buffers.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/buffer_pool.h"
#include "gmock/gmock.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "gtest/gtest.h"
#include "ps_server/block/element_ranges.h"
#include "ps_server/block/float_runs.h"
#include "ps_server/block/tensor_blocks.h"
#include "ps_server/block/tensor_table.h"
#include "tests/ps_server/shard/shard_requests.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ElementRangesTest, JoinsWhatTouchesAndFindsTheFirstHole) {
  ElementRanges ranges;
  EXPECT_EQ(ranges.FirstMissing(), 0);
  ranges.Add(5, 5);
  EXPECT_EQ(ranges.FirstMissing(), 0);
  ranges.Add(4, 6);
  EXPECT_EQ(ranges.FirstMissing(), 0);
  ranges.Add(0, 2);
  EXPECT_EQ(ranges.FirstMissing(), 2);
  ranges.Add(2, 4);
  EXPECT_EQ(ranges.FirstMissing(), 6);
  ranges.Add(1, 9);
  EXPECT_EQ(ranges.FirstMissing(), 9);
  ranges.Add(20, 30);
  ranges.Add(8, 25);
  EXPECT_EQ(ranges.FirstMissing(), 30);
}

// All values, read in requests of at most `step`, from chunks of
// `chunk_bytes` that start `shift` bytes off alignment.
std::vector<float> ReadInRuns(const std::vector<float>& values,
                              size_t chunk_bytes, size_t shift, int64_t step) {
  const std::string bytes =
      std::string(shift, 'x') + std::string(BytesOf(values));
  absl::Cord data;
  const absl::string_view all = absl::string_view(bytes).substr(shift);
  for (size_t at = 0; at < all.size(); at += chunk_bytes) {
    data.Append(absl::MakeCordFromExternal(all.substr(at, chunk_bytes), [] {}));
  }
  FloatRuns runs(data);
  std::vector<float> read;
  while (read.size() < values.size()) {
    int64_t wanted =
        std::min<int64_t>(step, static_cast<int64_t>(values.size()) -
                                    static_cast<int64_t>(read.size()));
    while (wanted > 0) {
      const absl::Span<const float> run = runs.Next(wanted);
      EXPECT_TRUE(static_cast<int64_t>(run.size()) == wanted ||
                  run.size() % FloatRuns::kRunMultiple == 0);
      read.insert(read.end(), run.begin(), run.end());
      wanted -= static_cast<int64_t>(run.size());
    }
  }
  return read;
}

TEST(FloatRunsTest, ReadsAnyCutOfTheBytes) {
  std::vector<float> values(5000);
  std::iota(values.begin(), values.end(), 1.0f);
  for (const size_t chunk : {1, 3, 4, 257, 1000, 4096, 100000}) {
    for (const size_t shift : {0, 1, 4}) {
      for (const int64_t step : {1, 1000, 5000}) {
        EXPECT_EQ(ReadInRuns(values, chunk, shift, step), values)
            << "chunks of " << chunk << " shifted by " << shift << " read by "
            << step;
      }
    }
  }
}

class EncodedFloatRunsTest : public testing::TestWithParam<std::string> {};

TEST_P(EncodedFloatRunsTest, DecodesAnyCutOfTheBytes) {
  const Codec* const codec = FindCodec(GetParam()).value();
  std::vector<float> values(3000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 256);  // exact
  }
  const auto n = static_cast<int64_t>(values.size());
  std::string encoded(static_cast<size_t>(EncodedBytes(codec, n)), 0);
  codec->Encode(values.data(), n, encoded.data());
  for (const size_t chunk : {1, 3, 257, 2048, 100000}) {
    absl::Cord data;
    for (size_t at = 0; at < encoded.size(); at += chunk) {
      data.Append(absl::MakeCordFromExternal(
          absl::string_view(encoded).substr(at, chunk), [] {}));
    }
    FloatRuns runs(data, codec);
    std::vector<float> read;
    while (read.size() < values.size()) {
      const absl::Span<const float> run =
          runs.Next(n - static_cast<int64_t>(read.size()));
      read.insert(read.end(), run.begin(), run.end());
    }
    EXPECT_EQ(read, values) << "chunks of " << chunk;
  }
}

TEST_P(EncodedFloatRunsTest, HandsOutWhatIsEncodedWhereItLies) {
  const Codec* const codec = FindCodec(GetParam()).value();
  const std::string encoded(2000, '\x11');
  const absl::Cord data =
      absl::MakeCordFromExternal(absl::string_view(encoded).substr(1), [] {});
  FloatRuns runs(data, codec);
  const EncodedRun run = runs.NextEncoded(999);
  EXPECT_EQ(run.size, 999);
  EXPECT_EQ(run.values.format, codec->format());
  EXPECT_EQ(run.values.data, encoded.data() + 1);
}

TEST_P(EncodedFloatRunsTest, FindsNonFiniteValuesAcrossChunks) {
  const Codec* const codec = FindCodec(GetParam()).value();
  for (const int64_t at : {-1, 0, 99, 100, 299}) {
    std::vector<float> values(300, -3.0f);
    if (at >= 0) values[at] = NAN;
    std::string encoded(600, 0);
    codec->Encode(values.data(), 300, encoded.data());
    absl::Cord data = absl::MakeCordFromExternal(
        absl::string_view(encoded).substr(0, 201), [] {});
    data.Append(absl::MakeCordFromExternal(
        absl::string_view(encoded).substr(201), [] {}));
    FloatRuns runs(data, codec);
    EXPECT_EQ(FindNonFinite(runs, 300), at);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EncodedFloatRunsTest,
                         testing::ValuesIn(CodecRegistry::Names()),
                         [](const auto& info) { return info.param; });

TEST(FloatRunsTest, UsesAlignedMemoryInPlace) {
  const std::vector<float> values(1000, 2.0f);
  const absl::Cord data = absl::MakeCordFromExternal(
      absl::string_view(reinterpret_cast<const char*>(values.data()), 4000),
      [] {});
  FloatRuns runs(data);
  EXPECT_EQ(runs.Next(1000).data(), values.data());
}

TEST(FloatRunsTest, FindsNonFiniteValuesAnywhere) {
  for (const int64_t at : {0, 1, 63, 64, 100, 198, 199}) {
    for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
      std::vector<float> values(200, 3.4e38f);
      values[at] = bad;
      const absl::Cord data = BytesOf(values);
      FloatRuns runs(data);
      EXPECT_EQ(FindNonFinite(runs, 200), at) << bad;
    }
  }
  const absl::Cord fine = BytesOf(std::vector<float>(200, -1e-45f));
  FloatRuns runs(fine);
  EXPECT_EQ(FindNonFinite(runs, 200), -1);
}

TEST(TensorBlocksTest, KeepsStreamsApartAndAligned) {
  const std::vector<SlotDef> slots = {{"m", 0.5f}, {"v", 2.0f}};
  const TensorDef def = MakeTensor("w", {2, kBlockElements + 3});
  AlignedBuffer parameter(2 * (kBlockElements + 3) * sizeof(float));
  AlignedBuffer slot_memory(SlotMemoryBytes(def, slots.size()));
  TensorBlocks tensor(def, slots, parameter.as<float>(),
                      slot_memory.as<float>());
  ASSERT_EQ(tensor.num_blocks(), 3);
  EXPECT_EQ(tensor.BlockElements(2), 6);
  for (int64_t block = 0; block < 3; ++block) {
    for (int stream = 0; stream < 3; ++stream) {
      float* const values = tensor.Stream(block, stream);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(values) % 64, 0);
      const absl::Span<float> span(values, tensor.BlockElements(block));
      EXPECT_THAT(span,
                  Each(stream == 0 ? 0.0f : slots[stream - 1].initial_value));
      std::fill(span.begin(), span.end(), 10.0f * block + stream);
    }
    EXPECT_EQ(tensor.Slots(block)[1], tensor.Stream(block, 2));
  }
  for (int64_t block = 0; block < 3; ++block) {
    for (int stream = 0; stream < 3; ++stream) {
      EXPECT_EQ(*tensor.Stream(block, stream), 10.0f * block + stream);
    }
  }
  EXPECT_THAT(tensor.parameter().subspan(kBlockElements - 2, 4),
              ElementsAre(0, 0, 10, 10));
}

// Where the slots of the next tensor begin if they follow these.
const float* EndOfSlots(const TensorBlocks& tensor) {
  const int64_t last = tensor.num_blocks() - 1;
  const int64_t padded = (tensor.BlockElements(last) + 15) / 16 * 16;
  return tensor.Stream(last, tensor.num_slots()) + padded;
}

TEST(TensorTableTest, SlotsOfSmallTensorsFillHugePagesTogether) {
  const std::vector<SlotDef> slots = {{"m", 0.5f}, {"v", 2.0f}};
  google::protobuf::RepeatedPtrField<TensorDef> defs;
  *defs.Add() = MakeTensor("first", {kBlockElements + 3});
  *defs.Add() = MakeTensor("mean", {kBlockElements}, STATE);
  for (int i = 0; i < 4; ++i) {
    *defs.Add() = MakeTensor(absl::StrCat("w", i), {kBlockElements});
  }
  TensorTable table = *TensorTable::Create(defs, slots);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(table[0].Stream(0, 1)) %
                AlignedBuffer::kHugePage,
            0u);
  EXPECT_THAT(table[1].Slots(0), IsEmpty());
  EXPECT_EQ(table[2].Stream(0, 1), EndOfSlots(table[0]));
  for (int i = 3; i < table.size(); ++i) {
    EXPECT_EQ(table[i].Stream(0, 1), EndOfSlots(table[i - 1])) << i;
  }
}

TEST(TensorTableTest, KeepsTheSlotsOfTensorsApart) {
  const std::vector<SlotDef> slots = {{"m", 0.5f}, {"v", 2.0f}};
  google::protobuf::RepeatedPtrField<TensorDef> defs;
  for (const int64_t size : {1, 17, 5}) {
    *defs.Add() = MakeTensor(absl::StrCat("w", size), {size});
  }
  TensorTable table = *TensorTable::Create(defs, slots);
  for (int i = 0; i < table.size(); ++i) {
    for (int slot = 0; slot < 2; ++slot) {
      const absl::Span<float> values(table[i].Slots(0)[slot],
                                     table[i].elements());
      EXPECT_THAT(values, Each(slots[slot].initial_value)) << i;
      std::fill(values.begin(), values.end(), -1.0f);
    }
  }
}

TEST(BufferPoolTest, UsesABufferAgainWhenItsLastCordIsGone) {
  BufferPool pool(1 << 20);
  const char* first = nullptr;
  {
    const absl::Cord cord = pool.Make(5000, [&](char* data) {
      first = data;
      std::fill_n(data, 5000, 'a');
    });
    const absl::Cord shared = cord;
    EXPECT_EQ(pool.idle_bytes(), 0);
    EXPECT_EQ(shared.size(), 5000);
    EXPECT_EQ(std::string(shared), std::string(5000, 'a'));
  }
  EXPECT_EQ(pool.idle_bytes(), 8192);
  const char* second = nullptr;
  const absl::Cord again = pool.Make(8000, [&](char* data) { second = data; });
  EXPECT_EQ(first, second);
}

TEST(BufferPoolTest, LeavesAtMostAQuarterUnused) {
  for (const size_t part : {16385, 20481, 1 << 20, (1 << 20) + 100, 1114112}) {
    BufferPool pool(8 << 20);
    {
      const absl::Cord cord = pool.Make(part, [](char*) {});
    }
    EXPECT_GE(pool.idle_bytes(), part);
    EXPECT_LE(pool.idle_bytes(), part + part / 4);
  }
}

TEST(BufferPoolTest, KeepsNoMoreThanItsLimitAndMayGoFirst) {
  auto pool = std::make_unique<BufferPool>(4096);
  const auto fill = [](char* data) { *data = 'x'; };
  {
    const absl::Cord a = pool->Make(100, fill);
    const absl::Cord b = pool->Make(100, fill);
  }
  EXPECT_EQ(pool->idle_bytes(), 4096);
  const absl::Cord survivor = pool->Make(100, fill);
  pool.reset();
  EXPECT_EQ(survivor[0], 'x');
}

}  // namespace
}  // namespace muster
