#include "worker/input/file/npz_member.h"

#include <zlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "tests/worker/input/file/npy_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

enum class Method { kStored = 0, kOther = 1, kDeflated = 8 };
enum class Form { kZip, kZip64 };

std::string Deflate(const std::string& data) {
  // The bytes between the header and the trailer of gzip.
  const std::string zipped = Gzip(data);
  return zipped.substr(10, zipped.size() - 18);
}

std::string EndRecords(size_t members, const std::string& directory,
                       size_t begin, Form form) {
  std::string end64;
  if (form == Form::kZip64) {
    end64 = Little(0x06064b50, 4) + Little(44, 8) + Little(45, 2) +
            Little(45, 2) + Little(0, 8) + Little(members, 8) +
            Little(members, 8) + Little(directory.size(), 8) +
            Little(begin, 8) + Little(0x07064b50, 4) + Little(0, 4) +
            Little(begin + directory.size(), 8) + Little(1, 4);
  }
  const uint64_t size = form == Form::kZip64 ? 0xffffffff : directory.size();
  const uint64_t offset = form == Form::kZip64 ? 0xffffffff : begin;
  return end64 + Little(0x06054b50, 4) + Little(0, 4) + Little(members, 2) +
         Little(members, 2) + Little(size, 4) + Little(offset, 4) +
         Little(3, 2) + "abc";
}

// A member as it lies in the file, and its entry in the directory.
struct Member {
  std::string local;
  std::string entry;
};

Member MakeMember(const std::string& name, const std::string& data,
                  Method method, size_t offset, Form form) {
  const std::string content =
      method == Method::kDeflated ? Deflate(data) : data;
  const uint32_t crc = static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
  const std::string head = Little(0, 2) + Little(static_cast<int>(method), 2) +
                           Little(0, 4) + Little(crc, 4);
  const bool is64 = form == Form::kZip64;
  const std::string sizes =
      is64 ? std::string(8, '\xff')
           : Little(content.size(), 4) + Little(data.size(), 4);
  const std::string extra =
      is64 ? Little(0x7777, 2) + Little(1, 2) + "x" + Little(1, 2) +
                 Little(24, 2) + Little(data.size(), 8) +
                 Little(content.size(), 8) + Little(offset, 8)
           : "";
  const std::string lengths = Little(name.size(), 2) + Little(extra.size(), 2);
  return {Little(0x04034b50, 4) + Little(45, 2) + head + sizes + lengths +
              name + extra + content,
          Little(0x02014b50, 4) + Little(45, 2) + Little(45, 2) + head + sizes +
              lengths + Little(0, 2) + Little(0, 2) + Little(0, 2) +
              Little(0, 4) + Little(is64 ? 0xffffffff : offset, 4) + name +
              extra};
}

// A zip of two members, both with `data`.
std::string Zip(const std::string& data, Method method,
                Form form = Form::kZip) {
  const Member a = MakeMember("images.npy", data, method, 0, form);
  const Member b = MakeMember("labels.npy", data, method, a.local.size(), form);
  const std::string directory = a.entry + b.entry;
  return a.local + b.local + directory +
         EndRecords(2, directory, a.local.size() + b.local.size(), form);
}

class NpzMemberTest : public testing::Test {
 protected:
  std::string Write(const std::string& content) {
    return WriteFile(dir_, "data.npz", content);
  }

  void ExpectRefused(const std::string& content, const std::string& reason) {
    EXPECT_THAT(OpenNpzMember(Write(content), "labels"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.npz"), HasSubstr(reason))));
  }

  const std::string dir_ = MakeTempDir();
  const std::string npy_ = Npy(NpyText("<f4", "(2,)"), RawBytes<float>({3, 4}));
};

TEST_F(NpzMemberTest, ReadsStoredAndDeflatedMembersOfBothForms) {
  for (const Method method : {Method::kStored, Method::kDeflated}) {
    for (const Form form : {Form::kZip, Form::kZip64}) {
      const std::string path = Write(Zip(npy_, method, form));
      EXPECT_THAT(ListNpz(path), IsOkAndHolds(ElementsAre("images", "labels")));
      for (const char* name : {"labels", "labels.npy"}) {
        const absl::StatusOr<NpyFile> file = OpenNpzMember(path, name);
        ASSERT_THAT(file, IsOk());
        std::vector<float> values(2);
        ASSERT_THAT(file->ReadRows(0, 2, absl::MakeSpan(values)), IsOk());
        EXPECT_THAT(values, ElementsAre(3, 4));
      }
    }
  }
}

TEST_F(NpzMemberTest, InflatesMembersLongerThanAChunk) {
  std::vector<uint32_t> numbers(200'000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i * 2654435761u;
  const std::string data = Npy(NpyText("<u4", "(200000,)"), RawBytes(numbers));
  const absl::StatusOr<NpyFile> file =
      OpenNpzMember(Write(Zip(data, Method::kDeflated)), "labels");
  ASSERT_THAT(file, IsOk());
  std::vector<int64_t> values(numbers.size());
  ASSERT_THAT(file->ReadRows(0, 200'000, absl::MakeSpan(values)), IsOk());
  EXPECT_EQ(values, std::vector<int64_t>(numbers.begin(), numbers.end()));
}

TEST_F(NpzMemberTest, NamesTheArraysThatThereAre) {
  EXPECT_THAT(OpenNpzMember(Write(Zip(npy_, Method::kStored)), "label"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("unknown array 'label'; did you mean "
                                 "'labels'? known: images, labels")));
}

TEST_F(NpzMemberTest, ErrorsNameTheArrayInTheFile) {
  EXPECT_THAT(OpenNpzMember(Write(Zip("text", Method::kStored)), "labels"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("data.npz/labels': not an npy file")));
}

TEST_F(NpzMemberTest, RefusesEveryTruncation) {
  for (const Form form : {Form::kZip, Form::kZip64}) {
    const std::string whole = Zip(npy_, Method::kDeflated, form);
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(OpenNpzMember(Write(whole.substr(0, size)), "labels").ok())
          << size;
    }
  }
}

// No way to end but a status, or the array.
TEST_F(NpzMemberTest, SurvivesEveryDamagedByte) {
  for (const Method method : {Method::kStored, Method::kDeflated}) {
    for (const Form form : {Form::kZip, Form::kZip64}) {
      const std::string whole = Zip(npy_, method, form);
      for (size_t at = 0; at < whole.size(); ++at) {
        for (const char flip : {'\x01', '\x80', '\xff'}) {
          std::string damaged = whole;
          damaged[at] ^= flip;
          const absl::StatusOr<NpyFile> file =
              OpenNpzMember(Write(damaged), "labels");
          EXPECT_TRUE(!file.ok() || file->num_rows() > 0) << at;
        }
      }
    }
  }
}

TEST_F(NpzMemberTest, RefusesAWrongChecksum) {
  std::string zip = Zip(npy_, Method::kDeflated);
  // In the directory's second entry.
  zip[zip.rfind("PK\x01\x02") + 16] ^= 1;
  EXPECT_THAT(OpenNpzMember(Write(zip), "labels"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
}

TEST_F(NpzMemberTest, RefusesBombsAndSizesThatLie) {
  std::string zip = Zip(npy_, Method::kDeflated);
  const size_t size_at = zip.rfind("PK\x01\x02") + 24;
  zip.replace(size_at, 4, Little(1u << 31, 4));
  ExpectRefused(zip, "bytes cannot be 2147483648");
  zip.replace(size_at, 4, Little(npy_.size() - 1, 4));
  ExpectRefused(zip, "damaged deflate data");
  zip.replace(size_at, 4, Little(npy_.size() + 1, 4));
  ExpectRefused(zip, "damaged deflate data");
}

TEST_F(NpzMemberTest, RefusesByNameWhatIsNotRead) {
  ExpectRefused(Zip(npy_, Method::kOther),
                "wanted it stored or deflated, found compression 1");
  std::string zip = Zip(npy_, Method::kStored);
  zip[zip.rfind("PK\x01\x02") + 8] |= 1;
  ExpectRefused(zip, "it is encrypted");
  ExpectRefused(npy_, "not a zip file");
  ExpectRefused("", "not a zip file");
}

}  // namespace
}  // namespace muster
