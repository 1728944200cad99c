#include "worker/task/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
