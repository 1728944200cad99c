#include "worker/saved/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string Contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

PredictionFile::Columns TwoClasses() {
  PredictionFile::Columns columns;
  columns.has_names = true;
  columns.has_class = true;
  columns.class_names = {"cat", "eel, \"fried\""};
  columns.number_name = "probability";
  columns.num_numbers = 2;
  columns.num_rows = 2;
  return columns;
}

// Writes two rows, and returns the file's contents.
std::string Written(const std::string& name,
                    const PredictionFile::Columns& columns) {
  const std::string path = PathOf(name);
  auto file = PredictionFile::Create(path, columns);
  EXPECT_THAT(file, IsOk());
  if (!file.ok()) return "";
  const std::vector<float> first = {0.75f, 0.25f}, second = {0.1f, 0.9f};
  const auto count = static_cast<size_t>(columns.num_numbers);
  EXPECT_THAT((*file)->Add({"a.png", 0, {first.data(), count}}), IsOk());
  EXPECT_THAT((*file)->Add({"b,c.png", 1, {second.data(), count}}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THAT((*file)->Finish(), IsOk());
  return Contents(path);
}

TEST(PredictionFileTest, CsvHasAHeaderAndQuotesWhatNeedsIt) {
  EXPECT_EQ(Written("named.csv", TwoClasses()),
            "file,class,probability_cat,\"probability_eel, \"\"fried\"\"\"\n"
            "a.png,cat,0.75,0.25\n"
            "\"b,c.png\",\"eel, \"\"fried\"\"\",0.100000001,0.899999976\n");
}

// As a signal ends the process in the middle.
TEST(PredictionFileTest, WhatIsUnfinishedCanBeRemovedByItsName) {
  const std::string path = PathOf("unfinished.csv");
  const auto file = PredictionFile::Create(path, TwoClasses());
  ASSERT_THAT(file, IsOk());
  EXPECT_TRUE(std::filesystem::exists(path + ".tmp"));
  PredictionFile::RemoveUnfinished(path);
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(PredictionFileTest, WithoutNamesClassesAreNumbers) {
  PredictionFile::Columns columns = TwoClasses();
  columns.has_names = false;
  columns.class_names.clear();
  columns.num_numbers = 0;
  EXPECT_EQ(Written("numbers.csv", columns), "class\n0\n1\n");
  EXPECT_EQ(Written("numbers.jsonl", columns),
            "{\"class\": 0}\n{\"class\": 1}\n");
}

TEST(PredictionFileTest, JsonIsAnObjectALine) {
  EXPECT_EQ(Written("named.jsonl", TwoClasses()),
            "{\"file\": \"a.png\", \"class\": \"cat\", \"probabilities\": "
            "[0.75, 0.25]}\n"
            "{\"file\": \"b,c.png\", \"class\": \"eel, \\\"fried\\\"\", "
            "\"probabilities\": [0.100000001, 0.899999976]}\n");
}

TEST(PredictionFileTest, NpyIsAnArrayOfTheNumbersOrElseOfTheClasses) {
  PredictionFile::Columns columns = TwoClasses();
  const std::string numbers = Written("numbers.npy", columns);
  EXPECT_EQ(numbers.size(), 128 + 2 * 2 * sizeof(float));
  EXPECT_THAT(numbers.substr(0, 128),
              HasSubstr("'descr': '<f4', 'fortran_order': False, "
                        "'shape': (2, 2), }"));
  columns.num_numbers = 0;
  const std::string classes = Written("classes.npy", columns);
  EXPECT_EQ(classes.size(), 128 + 2 * sizeof(int64_t));
  EXPECT_THAT(classes.substr(0, 128),
              HasSubstr("'descr': '<i8', 'fortran_order': False, "
                        "'shape': (2,), }"));
  EXPECT_EQ(classes[128 + 8], 1);
}

// A bad row and a good one.
std::string WrittenWithBadRow(const std::string& name,
                              const PredictionFile::Columns& columns) {
  auto file = PredictionFile::Create(PathOf(name), columns);
  EXPECT_THAT(file, IsOk());
  if (!file.ok()) return "";
  PredictionFile::Row bad;
  bad.name = "bad.png";
  bad.is_bad = true;
  EXPECT_THAT((*file)->Add(bad), IsOk());
  const std::vector<float> good = {0.75f, 0.25f};
  const auto count = static_cast<size_t>(columns.num_numbers);
  EXPECT_THAT((*file)->Add({"a.png", 0, {good.data(), count}}), IsOk());
  EXPECT_THAT((*file)->Finish(), IsOk());
  return Contents(PathOf(name));
}

TEST(PredictionFileTest, ABadRowKeepsItsPlace) {
  PredictionFile::Columns columns = TwoClasses();
  columns.class_names.clear();
  const std::string csv = WrittenWithBadRow("bad.csv", columns);
  EXPECT_THAT(csv, HasSubstr("\nbad.png,,,\na.png,0,0.75,0.25\n"));
  EXPECT_EQ(WrittenWithBadRow("bad.jsonl", columns),
            "{\"file\": \"bad.png\", \"class\": null, "
            "\"probabilities\": null}\n"
            "{\"file\": \"a.png\", \"class\": 0, \"probabilities\": "
            "[0.75, 0.25]}\n");
  const std::string npy = WrittenWithBadRow("bad.npy", columns);
  ASSERT_EQ(npy.size(), 128 + 4 * sizeof(float));
  float numbers[4];
  std::memcpy(numbers, npy.data() + 128, sizeof(numbers));
  EXPECT_TRUE(std::isnan(numbers[0]) && std::isnan(numbers[1]));
  EXPECT_EQ(numbers[2], 0.75f);
}

TEST(PredictionFileTest, ABadRowOfClassesAloneKeepsItsPlace) {
  PredictionFile::Columns columns = TwoClasses();
  columns.class_names.clear();
  columns.has_names = false;
  columns.num_numbers = 0;
  EXPECT_EQ(WrittenWithBadRow("bad_class.csv", columns), "class\n\"\"\n0\n");
  const std::string npy = WrittenWithBadRow("bad_class.npy", columns);
  ASSERT_EQ(npy.size(), 128 + 2 * sizeof(int64_t));
  int64_t classes[2];
  std::memcpy(classes, npy.data() + 128, sizeof(classes));
  EXPECT_EQ(classes[0], -1);
  EXPECT_EQ(classes[1], 0);
}

TEST(PredictionFileTest, WhatIsNotFinishedLeavesNothing) {
  const std::string path = PathOf("unfinished.csv");
  { ASSERT_THAT(PredictionFile::Create(path, TwoClasses()), IsOk()); }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(PredictionFileTest, RefusesOtherEndingsAndFoldersThatAreNotThere) {
  EXPECT_THAT(PredictionFile::Create(PathOf("a.txt"), TwoClasses()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(".csv, .jsonl or .npy")));
  EXPECT_THAT(PredictionFile::Create(PathOf("none/a.csv"), TwoClasses()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/a.csv")));
}

}  // namespace
}  // namespace muster
