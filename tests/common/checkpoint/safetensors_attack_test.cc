// Hostile safetensors files. The cases have the names of the negative tests of
// the format's own crate (huggingface/safetensors, tensor.rs) and of its
// attacks folder; each is a whole file through the reader.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/safetensors_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFile[] = "root/d/x.safetensors";

// The length of a header as the file has it.
std::string Prefix(uint64_t length) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>((length >> shift) & 0xff));
  }
  return bytes;
}

std::string File(const std::string& json, size_t data_bytes) {
  return Prefix(json.size()) + json + std::string(data_bytes, '\0');
}

// One tensor "test".
std::string Tensor(const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return absl::StrCat(R"({"test":{"dtype":")", dtype, R"(","shape":)", shape,
                      R"(,"data_offsets":)", offsets, "}}");
}

class SafetensorsAttackTest : public ::testing::Test {
 protected:
  SafetensorsAttackTest() { EXPECT_THAT(fs_.CreateFolder("root/d"), IsOk()); }

  absl::Status Open(const std::string& contents) {
    fs_.SetContents(kFile, contents);
    return SafetensorsReader::Open(&fs_, kFile).status();
  }
  void ExpectRefused(const std::string& contents, const std::string& says) {
    EXPECT_THAT(Open(contents),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(kFile), HasSubstr(says))));
  }

  FakeFileSystem fs_{"root"};
};

// ---- tensor.rs -----------------------------------------------------------

TEST_F(SafetensorsAttackTest, JsonAttack) {
  // Ten tensors that are all the same bytes.
  std::string json = "{";
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&json, i > 0 ? "," : "", R"("weight_)", i,
                    R"(":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})");
  }
  ExpectRefused(File(json + "}", 16), "begins at byte 0");
}

TEST_F(SafetensorsAttackTest, MetadataIncompleteBuffer) {
  const std::string json = Tensor("I32", "[2,2]", "[0,16]");
  EXPECT_THAT(Open(File(json, 16)), IsOk());
  // Another file behind the tensors, and bytes of them that are not there.
  ExpectRefused(File(json, 16) + "extra_bogus_data_for_polyglot_file",
                "the file has 50 after its header");
  ExpectRefused(File(json, 15), "the file has 15 after its header");
}

TEST_F(SafetensorsAttackTest, HeaderTooLarge) {
  const std::string json = Tensor("I32", "[2,2]", "[0,16]");
  for (const uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 40,
                                uint64_t{1} << 63, ~uint64_t{0}}) {
    ExpectRefused(Prefix(length) + json + std::string(16, '\0'),
                  "the format allows 100000000");
  }
}

TEST_F(SafetensorsAttackTest, HeaderTooSmall) {
  ExpectRefused("", "0 bytes are too few");
  ExpectRefused("1234567", "7 bytes are too few");
}

TEST_F(SafetensorsAttackTest, InvalidHeaderLength) {
  ExpectRefused(Prefix(60), "a header of 60 bytes in a file of 8");
}

TEST_F(SafetensorsAttackTest, NonUtf8) {
  ExpectRefused(Prefix(1) + "\xff", "UTF-8");
}

TEST_F(SafetensorsAttackTest, NotJson) {
  ExpectRefused(Prefix(1) + "{", "header 1:2");
  ExpectRefused(Prefix(4) + "null", "does not start with '{'");
}

TEST_F(SafetensorsAttackTest, ZeroSizedTensor) {
  EXPECT_THAT(Open(File(Tensor("I32", "[2,0]", "[0,0]"), 0)), IsOk());
}

TEST_F(SafetensorsAttackTest, InvalidInfo) {
  ExpectRefused(File(Tensor("I32", "[2,2]", "[0,4]"), 16), "has 16 bytes");
  ExpectRefused(File(Tensor("I32", "[2,2]", "[16,0]"), 16), "data_offsets");
}

TEST_F(SafetensorsAttackTest, ValidationOverflow) {
  // In the number of elements, and in the number of bytes.
  ExpectRefused(File(Tensor("I32", "[2,18446744073709551614]", "[0,16]"), 16),
                "63 bits");
  ExpectRefused(File(Tensor("I32", "[2,9223372036854775807]", "[0,16]"), 16),
                "elements");
  ExpectRefused(File(Tensor("F64", "[1152921504606846976]", "[0,16]"), 16),
                "test");
}

// ---- attacks/ ------------------------------------------------------------

TEST_F(SafetensorsAttackTest, AbuseAttempt1OverlappingTensors) {
  const std::string a =
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string b =
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})";
  ExpectRefused(File("{" + a + "," + b + "}", 12), "'b' begins at byte 4");
}

TEST_F(SafetensorsAttackTest, AbuseAttempt2HolesBetweenTensors) {
  const std::string a =
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string b =
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]})";
  ExpectRefused(File("{" + a + "," + b + "}", 20), "'b' begins at byte 12");
}

TEST_F(SafetensorsAttackTest, AbuseAttempt3AHugeHeaderOfBrackets) {
  // Depth must not be recursion: the header would end the process.
  ExpectRefused(File("{\"a\":" + std::string(1'000'000, '['), 0), "header 1:");
  ExpectRefused(File("{\"a\":" + std::string(1'000'000, '{'), 0), "header 1:");
}

TEST_F(SafetensorsAttackTest, OffsetsOutsideOfTheFile) {
  ExpectRefused(
      File(Tensor("U8", "[9223372036854775807]", "[0,9223372036854775807]"),
           16),
      "");
  ExpectRefused(File(Tensor("U8", "[1099511627776]", "[0,1099511627776]"), 16),
                "the tensors have 1099511627776 bytes, the file has 16");
}

TEST_F(SafetensorsAttackTest, DuplicateKeys) {
  const std::string a =
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  ExpectRefused(File("{" + a + "," + a + "}", 8), "'a' is given twice");
}

TEST_F(SafetensorsAttackTest, ControlCharactersOfANameAreNotPrinted) {
  const absl::Status status =
      Open(File("{\"\\u001b]0;x\\u0007\":{\"dtype\":\"F32\"}}", 0));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("\\x1b]0;x\\x07")));
}

}  // namespace
}  // namespace muster
