#include "worker/input/data_set/data_sections.h"

#include <string>
#include <vector>

#include "common/base/fingerprint.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "worker/input/data_set/data_schema.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

DataSchema ParseSchema(const std::string& text) {
  DataSchema schema;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &schema));
  return schema;
}

DataSchema Flowers() {
  return ParseSchema(R"pb(
    format: "csv"
    column { name: "petal" kind: "number" }
    column { name: "photo" kind: "image" shape: 3 shape: 28 shape: 28 }
    column { name: "sound" kind: "number" any_shape: true }
    label {
      kind: "class"
      column: "name"
      num_classes: 2
      class_name: "rose"
      class_name: "tulip"
    }
    map {
      type: "random_crop"
      attr { name: "padding" i: 4 }
    }
    map { type: "random_flip" }
    training {
      rows: 200
      files {
        examples: 200
        num_files: 1
        bytes: 90
        files { name: "train.csv" bytes: 90 }
      }
    }
  )pb");
}

std::vector<std::string> Names(const std::vector<DataSection>& sections) {
  std::vector<std::string> names;
  for (const DataSection& section : sections) names.push_back(section.name());
  return names;
}

DataSection Find(const std::vector<DataSection>& sections,
                 const std::string& name) {
  for (const DataSection& section : sections) {
    if (section.name() == name) return section;
  }
  ADD_FAILURE() << "no section " << name;
  return {};
}

std::string TextOf(const DataSchema& schema, const std::string& name) {
  return Find(MakeDataSections(schema, 3), name).text();
}

bool IsWhole(const DataSection& section) {
  return section.digest() == Fingerprint64(section.text());
}

TEST(DataSectionsTest, EachSectionHasAnItemALine) {
  EXPECT_THAT(Names(MakeDataSections(Flowers(), 3)),
              ElementsAre("columns", "classes", "map", "label", "rows",
                          "workers", "files"));
  EXPECT_EQ(TextOf(Flowers(), "columns"),
            "petal number []\nphoto image [3,28,28]\nsound number [any]\n");
  EXPECT_EQ(TextOf(Flowers(), "classes"), "rose\ntulip\n");
  EXPECT_EQ(TextOf(Flowers(), "label"), "class\n2 classes\ncolumn name\n");
  DataSchema weighted = Flowers();
  weighted.mutable_label()->set_weight_column("w");
  EXPECT_EQ(TextOf(weighted, "label"),
            "class\n2 classes\ncolumn name\nweight column w\n");
  EXPECT_EQ(TextOf(Flowers(), "rows"), "200\n");
  EXPECT_EQ(TextOf(Flowers(), "workers"), "3\n");
  EXPECT_EQ(TextOf(Flowers(), "files"),
            "1 files with 90 bytes\ntrain.csv 90\n");
}

TEST(DataSectionsTest, AStageOfTheMapIsALine) {
  EXPECT_EQ(TextOf(Flowers(), "map"),
            "type: \"random_crop\" attr { name: \"padding\" i: 4 }\n"
            "type: \"random_flip\"\n");
}

TEST(DataSectionsTest, AStreamHasNoRows) {
  DataSchema stream = Flowers();
  stream.mutable_training()->clear_rows();
  EXPECT_THAT(
      Names(MakeDataSections(stream, 3)),
      ElementsAre("columns", "classes", "map", "label", "workers", "files"));
}

TEST(DataSectionsTest, AProgramHasTheNumberOfWorkersAlone) {
  DataSchema program;
  program.set_format(kProgramFormat);
  program.mutable_training()->set_rows(5);
  EXPECT_THAT(Names(MakeDataSections(program, 3)), ElementsAre("workers"));
}

// Only the chief opens it.
TEST(DataSectionsTest, TheTestHalfIsInNoSection) {
  DataSchema schema = Flowers();
  *schema.mutable_test() = schema.training();
  schema.mutable_test()->set_rows(5);
  const std::vector<DataSection> with = MakeDataSections(schema, 3);
  const std::vector<DataSection> without = MakeDataSections(Flowers(), 3);
  ASSERT_EQ(with.size(), without.size());
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].digest(), without[i].digest()) << with[i].name();
  }
}

TEST(DataSectionsTest, FilesThatAreNotListedHaveTheirFingerprint) {
  DataSchema schema = Flowers();
  DataFiles* const files = schema.mutable_training()->mutable_files();
  files->clear_files();
  files->set_fingerprint(0xabc);
  EXPECT_EQ(TextOf(schema, "files"),
            "1 files with 90 bytes\nfingerprint 0000000000000abc\n");
}

TEST(DataSectionsTest, ANewlineInANameForgesNoLine) {
  DataSchema schema = Flowers();
  schema.mutable_label()->set_class_name(0, "rose\nlily");
  EXPECT_EQ(TextOf(schema, "classes"), "rose\\nlily\ntulip\n");
}

TEST(DataSectionsTest, ALongSectionIsCutBehindALineAndTheRestIsWhole) {
  DataSchema schema = Flowers();
  for (int i = 0; i < 1000000; ++i) {
    schema.mutable_label()->add_class_name("name " + std::to_string(i));
  }
  const std::vector<DataSection> sections = MakeDataSections(schema, 3);
  size_t bytes = 0;
  for (const DataSection& section : sections) {
    bytes += section.text().size();
    EXPECT_EQ(IsWhole(section), section.name() != "classes") << section.name();
  }
  EXPECT_LE(bytes, kMaxSectionBytes);
  EXPECT_GT(bytes, kMaxSectionBytes - 20);
  EXPECT_EQ(Find(sections, "classes").text().back(), '\n');
  // The last of all, which is not sent, is in the digest.
  schema.mutable_label()->set_class_name(1000001, "another");
  EXPECT_NE(Find(MakeDataSections(schema, 3), "classes").digest(),
            Find(sections, "classes").digest());
}

TEST(DataSectionsTest, ALineThatDoesNotFitIsLeftOut) {
  DataSchema schema = Flowers();
  schema.mutable_label()->set_class_name(1, std::string(1 << 20, 'a'));
  const DataSection classes = Find(MakeDataSections(schema, 3), "classes");
  EXPECT_EQ(classes.text(), "rose\n");
  EXPECT_FALSE(IsWhole(classes));
}

TEST(DataSectionsTest, SeveralLongSectionsShareTheRoom) {
  DataSchema schema = Flowers();
  for (int i = 0; i < 10000; ++i) {
    schema.mutable_label()->add_class_name("name " + std::to_string(i));
    schema.add_column()->set_name("column " + std::to_string(i));
  }
  const std::vector<DataSection> sections = MakeDataSections(schema, 3);
  for (const char* name : {"classes", "columns"}) {
    EXPECT_GT(Find(sections, name).text().size(), kMaxSectionBytes * 2 / 5);
  }
}

}  // namespace
}  // namespace muster
