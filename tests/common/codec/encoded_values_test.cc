#include "common/codec/encoded_values.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kValues = 1000;

// "" is float32.
class EncodedValuesTest : public testing::TestWithParam<std::string> {
 protected:
  EncodedValuesTest() : codec_(FindCodec(GetParam()).value()) {
    for (int64_t i = 0; i < kValues; ++i) {
      values_.push_back(static_cast<float>(i % 256));  // exact in every codec
    }
    encoded_.resize(static_cast<size_t>(EncodedBytes(codec_, kValues)));
    EXPECT_EQ(EncodeTo(codec_, values_.data(), kValues, &encoded_[0]),
              encoded_.data() + encoded_.size());
  }

  const Codec* const codec_;
  std::vector<float> values_;
  std::string encoded_;
};

TEST_P(EncodedValuesTest, AreWhatTheCodecWrites) {
  std::string wanted(encoded_.size(), '\0');
  if (codec_ == nullptr) {
    std::memcpy(&wanted[0], values_.data(), wanted.size());
  } else {
    codec_->Encode(values_.data(), kValues, &wanted[0]);
  }
  EXPECT_TRUE(encoded_ == wanted);
}

TEST_P(EncodedValuesTest, AreReadOutOfAnyChunks) {
  for (const size_t chunk : {1, 3, 257, 100000}) {
    absl::Cord data;
    for (size_t at = 0; at < encoded_.size(); at += chunk) {
      data.Append(absl::MakeCordFromExternal(
          absl::string_view(encoded_).substr(at, chunk), [] {}));
    }
    for (const int64_t first : {0, 1, 333, 1000}) {
      std::vector<float> read(kValues, -1);
      auto position = data.char_begin();
      DecodeNext(codec_, &position, first, read.data());
      DecodeNext(codec_, &position, kValues - first, read.data() + first);
      EXPECT_TRUE(read == values_)
          << "chunks of " << chunk << ", first " << first;
      EXPECT_TRUE(position == data.char_end());
    }
  }
}

std::vector<std::string> CodecsAndNone() {
  std::vector<std::string> names = CodecRegistry::Names();
  names.emplace_back();
  return names;
}

INSTANTIATE_TEST_SUITE_P(Codecs, EncodedValuesTest,
                         testing::ValuesIn(CodecsAndNone()),
                         [](const auto& info) {
                           return info.param.empty() ? "float32" : info.param;
                         });

}  // namespace
}  // namespace muster
