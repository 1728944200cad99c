#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/worker/ctl/verb_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TableExportTest : public VerbFixture {
 protected:
  TableExportTest() {
    EXPECT_THAT(fs_.CreateFolder("train/out"), IsOk());
    EXPECT_THAT(SaveTablesExample(&fs_, "train", 30, {user_}), IsOk());
  }
  VerbResult Export(const std::string& table, const std::string& file) {
    return Ctl({"table", "export", "train", table, file});
  }

  const ExampleTable user_ = MakeExampleTable("user", 2, {0, 1, -1});
};

TEST_F(TableExportTest, Rows_AreWrittenAsIdsAndValues) {
  const VerbResult result = Export("user", "train/out/user");
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              HasSubstr("exported 3 rows of table 'user' of train/ckpt-"));
  const std::string file = fs_.Contents("train/out/user");
  EXPECT_THAT(file,
              AllOf(HasSubstr(R"("ids":{"dtype":"I64","shape":[3])"),
                    HasSubstr(R"("values":{"dtype":"F32","shape":[3,2])")));
  const RowBlock rows = MakeRows(user_.saved, user_.ids);
  EXPECT_EQ(file.substr(file.size() - 48),
            absl::StrCat(rows.stream_bytes(RowBlock::kIds),
                         rows.stream_bytes(RowBlock::kValues)));
}

TEST_F(TableExportTest, AnUnknownTable_IsAnsweredWithTheNamesThereAre) {
  const VerbResult result = Export("users", "train/out/user");
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, AllOf(HasSubstr("has no table 'users'"),
                                  HasSubstr("its tables are: user")));
  EXPECT_EQ(Ctl({"table", "export", Path(10), "user", "train/out/x"}).exit_code,
            kExitBadConfig);
}

TEST_F(TableExportTest, AFileThatIsThere_IsNotReplaced) {
  fs_.SetContents("train/out/user", "mine");
  EXPECT_EQ(Export("user", "train/out/user").exit_code, kExitBadConfig);
  EXPECT_EQ(fs_.Contents("train/out/user"), "mine");
}

}  // namespace
}  // namespace muster
