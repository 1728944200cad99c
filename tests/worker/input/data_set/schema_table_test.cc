// One table over all readers: data that differ from a run's in one way, and
// how they are read by the run's schema. Values are the same to the bit.
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/summary/event_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/example.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "tests/worker/input/file/npy_fixture.h"
#include "tests/worker/input/image/image_fixture.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/stream/create_stream.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr uint64_t kSeed = 1;
constexpr int kRows = 4;
constexpr int kClasses = 2;

enum class Effect {
  // The values of the run's data; `words` are in a remark, if there are any.
  kSame,
  // `words` are in the error.
  kRefused,
  // The data of this reader cannot differ so; `words` say why.
  kImpossible,
};

struct Cell {
  std::string reader;
  std::string change;
  Effect effect = Effect::kSame;
  std::string words;
};

const char* const kChanges[] = {"reordered",   "missing", "extra_column",
                                "extra_class", "map",     "rows",
                                "kind",        "fraction"};

const std::vector<Cell>& Table() {
  constexpr Effect kSame = Effect::kSame;
  constexpr Effect kRefused = Effect::kRefused;
  constexpr Effect kImpossible = Effect::kImpossible;
  static const auto* const table = new std::vector<Cell>{
      {"csv", "reordered", kSame, ""},
      {"csv", "missing", kRefused, "lacks the column 'bee' of the run"},
      {"csv", "extra_column", kSame, "are left out of the examples: zoo"},
      {"csv", "extra_class", kRefused, "unknown class 'elk'"},
      {"csv", "map", kRefused, "input.map: stage 1 was nothing"},
      {"csv", "rows", kSame, "there are 5 examples, were 4"},
      {"csv", "kind", kRefused, "wanted a finite number, found 'red'"},
      {"csv", "fraction", kRefused, "the run was trained with 0"},

      {"csv_stream", "reordered", kSame, ""},
      {"csv_stream", "missing", kRefused, "did you mean 'beee'?"},
      {"csv_stream", "extra_column", kSame, "left out of the examples: zoo"},
      {"csv_stream", "extra_class", kRefused, "a class from 0 to 1"},
      {"csv_stream", "map", kRefused, "input.map: stage 1 was nothing"},
      {"csv_stream", "rows", kSame, "train.csv has 68 bytes, had 57"},
      {"csv_stream", "kind", kRefused, "wanted a finite number, found 'red'"},
      {"csv_stream", "fraction", kRefused, "does not go with input.stream"},

      {"npy", "reordered", kSame, ""},
      {"npy", "missing", kRefused, "0 of labels"},
      {"npy", "extra_column", kRefused, "2 of examples"},
      {"npy", "extra_class", kRefused, "is of class 2, which the run does not"},
      {"npy", "map", kRefused, "input.map: stage 1 was nothing"},
      {"npy", "rows", kSame, "there are 5 examples, were 4"},
      {"npy", "kind", kRefused, "was number [2] in the run, is bytes [2] now"},
      {"npy", "fraction", kRefused, "the run was trained with 0"},

      {"tfrecord", "reordered", kSame, ""},
      {"tfrecord", "missing", kRefused, "unknown feature 'x'"},
      // A feature that nobody asks for was never a column.
      {"tfrecord", "extra_column", kSame, ""},
      {"tfrecord", "extra_class", kRefused, "is of class 2, which the run"},
      {"tfrecord", "map", kRefused, "input.map: stage 1 was nothing"},
      {"tfrecord", "rows", kSame, "there are 5 examples, were 4"},
      {"tfrecord", "kind", kRefused,
       "was number of any shape in the run, is b"},
      {"tfrecord", "fraction", kRefused, "the run was trained with 0"},

      {"tfrecord_stream", "reordered", kSame, ""},
      {"tfrecord_stream", "missing", kRefused, "unknown feature 'x'"},
      {"tfrecord_stream", "extra_column", kSame, ""},
      {"tfrecord_stream", "extra_class", kRefused, "a class from 0 to 1"},
      {"tfrecord_stream", "map", kRefused, "input.map: stage 1 was nothing"},
      {"tfrecord_stream", "rows", kSame, "train.tfrecord has"},
      {"tfrecord_stream", "kind", kRefused, "is bytes of any shape now"},
      {"tfrecord_stream", "fraction", kRefused,
       "does not go with input.stream"},

      {"idx", "reordered", kImpossible, "there is one column"},
      {"idx", "missing", kRefused, "train-labels-idx1-ubyte"},
      {"idx", "extra_column", kImpossible, "each half has the same two files"},
      {"idx", "extra_class", kRefused, "is of class 2, which the run does not"},
      {"idx", "map", kRefused, "input.map: stage 1 was nothing"},
      {"idx", "rows", kSame, "there are 5 examples, were 4"},
      {"idx", "kind", kRefused, "bytes [1, 2] in the run, is bytes [2, 1] now"},
      {"idx", "fraction", kRefused, "the run was trained with 0"},

      {"cifar", "reordered", kImpossible, "a row has the format's layout"},
      {"cifar", "missing", kImpossible, "a row has the format's layout"},
      {"cifar", "extra_column", kImpossible, "a row has the format's layout"},
      {"cifar", "extra_class", kRefused, "has 100 classes, the run has 10"},
      {"cifar", "map", kRefused, "input.map: stage 1 was nothing"},
      {"cifar", "rows", kSame, "there are 5 examples, were 4"},
      {"cifar", "kind", kImpossible, "pixels are bytes [3, 32, 32]"},
      {"cifar", "fraction", kRefused, "the run was trained with 0"},

      {"image_folder", "reordered", kImpossible, "there is one column"},
      {"image_folder", "missing", kRefused, "it has no classes"},
      {"image_folder", "extra_column", kImpossible, "there is one column"},
      {"image_folder", "extra_class", kRefused, "unknown class 'elk'"},
      {"image_folder", "map", kRefused, "input.map: stage 1 was nothing"},
      {"image_folder", "rows", kSame, "there are 5 examples, were 4"},
      {"image_folder", "kind", kRefused, "is image [1, 2, 1] now"},
      {"image_folder", "fraction", kRefused, "the run was trained with 0"},

      {"synthetic", "reordered", kImpossible, "there is one column"},
      {"synthetic", "missing", kImpossible, "nothing is read"},
      {"synthetic", "extra_column", kImpossible, "nothing is read"},
      {"synthetic", "extra_class", kRefused, "has 3 classes, the run has 2"},
      {"synthetic", "map", kRefused, "input.map: stage 1 was nothing"},
      {"synthetic", "rows", kSame, "there are 5 examples, were 4"},
      {"synthetic", "kind", kImpossible, "values are the model's"},
      {"synthetic", "fraction", kRefused, "the run was trained with 0"},
  };
  return *table;
}

// What a reader reads of a folder: each row's values, and its label.
struct Found {
  DataSchema schema;
  std::vector<std::vector<float>> rows;
  std::vector<std::string> remarks;
};

// The data of one reader: those of a run, and those that differ from them.
class ReaderData {
 public:
  ReaderData(const std::string& reader, const std::string& change,
             int rows = kRows)
      : reader_(reader), change_(change), dir_(MakeTempDir()) {
    spec_.set_type(reader.substr(0, reader.find('_')));
    if (reader == "image_folder") spec_.set_type(reader);
    spec_.set_stream(absl::EndsWith(reader, "_stream"));
    if (reader != "synthetic") spec_.set_dir(dir_);
    if (change == "map") AddMap();
    if (change == "kind" && reader == "image_folder") {
      for (const int dim : {1, 2, 1}) spec_.add_shape(dim);
    }
    if (change == "fraction") spec_.set_validation_fraction(0.25);
    num_rows_ = change == "rows" ? rows + 1 : rows;
    Write();
  }

  // Each row's values and its label.
  absl::StatusOr<std::vector<std::vector<float>>> Rows(Split half,
                                                       double test_fraction,
                                                       double validation) {
    spec_.set_test_fraction(test_fraction);
    spec_.set_validation_fraction(validation);
    ASSIGN_OR_RETURN(Found found, ReadSet(/*run=*/nullptr, half));
    return std::move(found.rows);
  }

  absl::StatusOr<Found> Read(std::shared_ptr<const DataSchema> run) const {
    absl::StatusOr<Found> found =
        spec_.stream() ? ReadStream(run) : ReadSet(run);
    if (!found.ok()) return found;
    found->schema = CompleteSchema(spec_, kSeed, found->schema);
    if (run == nullptr) return found;
    RETURN_IF_ERROR(CheckSchemaChange(*run, found->schema));
    for (std::string& remark : SchemaRemarks(*run, found->schema)) {
      found->remarks.push_back(std::move(remark));
    }
    return found;
  }

 private:
  Shape shape() const {
    if (reader_ == "cifar") return Shape({3, 32, 32});
    if (reader_ == "idx" || reader_ == "image_folder") return Shape({1, 1, 2});
    return Shape({2});
  }

  void AddMap() {
    MapSpec& stage = *spec_.add_map();
    stage.set_type("normalize");
    for (const char* const name : {"mean", "std"}) {
      Attr& attr = *stage.add_attr();
      attr.set_name(name);
      attr.set_s(reader_ == "cifar" ? "2, 2, 2" : "2");
    }
  }

  bool Is(const std::string& change) const { return change_ == change; }
  int Label(int row) const {
    return Is("extra_class") && row == kRows - 1 ? kClasses : row % kClasses;
  }

  void Write();
  void WriteCsv();
  void WriteNpy();
  void WriteTfRecord();
  void WriteIdx();
  void WriteCifar();
  void WriteImages();

  absl::StatusOr<Found> ReadSet(std::shared_ptr<const DataSchema> run,
                                Split half = Split::kTrain) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<DataSet> set,
                     CreateDataSet(spec_, shape(), kSeed, half, {}, run));
    Found found = {set->Schema(), {}, set->Remarks()};
    for (int64_t i = 0; i < set->num_examples(); ++i) {
      std::vector<float> values(set->example_shape().num_elements());
      int32_t label = -1;
      RETURN_IF_ERROR(set->Read(i, {values.data(), &label}));
      values.push_back(static_cast<float>(label));
      found.rows.push_back(std::move(values));
    }
    return found;
  }

  absl::StatusOr<Found> ReadStream(
      std::shared_ptr<const DataSchema> run) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<ExampleStream> stream,
                     CreateStream(spec_, shape(), kSeed, {}, kClasses, run));
    Found found = {stream->Schema(), {}, stream->Remarks()};
    RETURN_IF_ERROR(stream->Begin());
    StreamRecord record;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, stream->Next(&record));
      if (!more) return found;
      std::vector<float> values(2);
      int32_t label = -1;
      RETURN_IF_ERROR(
          stream->Decode(record, /*epoch=*/0, {values.data(), &label}));
      values.push_back(static_cast<float>(label));
      found.rows.push_back(std::move(values));
    }
  }

  const std::string reader_;
  const std::string change_;
  const std::string dir_;
  InputSpec spec_;
  int num_rows_ = 0;
};

void ReaderData::Write() {
  if (spec_.type() == "csv") WriteCsv();
  if (spec_.type() == "npy") WriteNpy();
  if (spec_.type() == "tfrecord") WriteTfRecord();
  if (spec_.type() == "idx") WriteIdx();
  if (spec_.type() == "cifar") WriteCifar();
  if (spec_.type() == "image_folder") WriteImages();
  spec_.set_synthetic_examples(num_rows_);
  spec_.set_synthetic_classes(Is("extra_class") ? kClasses + 1 : kClasses);
}

void ReaderData::WriteCsv() {
  std::vector<std::string> columns = {"ant", "label", "bee"};
  if (Is("reordered")) columns = {"bee", "ant", "label"};
  if (Is("missing")) columns[2] = "beee";
  if (Is("extra_column")) columns = {"zoo", "ant", "label", "bee"};
  std::string text = absl::StrJoin(columns, ",") + "\n";
  for (int i = 0; i < num_rows_; ++i) {
    const std::string label =
        spec_.stream()
            ? absl::StrCat(Label(i))
            : std::vector<std::string>{"cat", "dog", "elk"}[Label(i)];
    std::vector<std::string> fields;
    for (const std::string& column : columns) {
      const double value = column == "ant" ? i + 0.25 : -10 * i - 1;
      fields.push_back(column == "label" ? label : absl::StrCat(value));
    }
    if (Is("kind") && i == 2) fields[0] = "red";
    text += absl::StrJoin(fields, ",") + "\n";
  }
  WriteFile(dir_, "train.csv", text);
}

void ReaderData::WriteNpy() {
  std::vector<float> values;
  std::vector<int64_t> labels;
  for (int i = 0; i < num_rows_; ++i) {
    values.push_back(i + 0.25f);
    values.push_back(-10.0f * i);
    labels.push_back(Label(i));
  }
  std::string examples = Npy(
      NpyText("<f4", absl::StrCat("(", num_rows_, ", 2)")), RawBytes(values));
  if (Is("kind")) {
    examples = Npy(NpyText("|u1", absl::StrCat("(", num_rows_, ", 2)")),
                   std::string(2 * num_rows_, '\1'));
  }
  // The file of labels is sorted before that of examples.
  WriteFile(dir_, Is("reordered") ? "train_z.npy" : "train_a.npy", examples);
  if (Is("extra_column")) WriteFile(dir_, "train_c.npy", examples);
  if (Is("missing")) return;
  WriteFile(dir_, "train_y.npy",
            Npy(NpyText("<i8", absl::StrCat("(", num_rows_, ",)")),
                RawBytes(labels)));
}

void ReaderData::WriteTfRecord() {
  std::string text;
  for (int i = 0; i < num_rows_; ++i) {
    Example x;
    Feature& feature =
        (*x.mutable_features()->mutable_feature())[Is("missing") ? "xx" : "x"];
    if (Is("kind")) {
      feature.mutable_bytes_list()->add_value("ab");
    } else {
      feature.mutable_float_list()->add_value(i + 0.25f);
      feature.mutable_float_list()->add_value(-10.0f * i);
    }
    if (Is("extra_column")) {
      Feature& other = (*x.mutable_features()->mutable_feature())["zoo"];
      other.mutable_float_list()->add_value(7);
    }
    Example label;
    (*label.mutable_features()->mutable_feature())["label"]
        .mutable_int64_list()
        ->add_value(Label(i));
    // Two messages one after the other are one of all their features.
    AppendRecord(Is("reordered")
                     ? label.SerializeAsString() + x.SerializeAsString()
                     : x.SerializeAsString() + label.SerializeAsString(),
                 &text);
  }
  WriteFile(dir_, "train.tfrecord", text);
}

void ReaderData::WriteIdx() {
  const auto rows = static_cast<uint32_t>(num_rows_);
  std::string pixels;
  std::string labels;
  for (int i = 0; i < num_rows_; ++i) {
    pixels += {static_cast<char>(i), static_cast<char>(10 * i)};
    labels.push_back(static_cast<char>(Label(i)));
  }
  const std::vector<uint32_t> dims = Is("kind")
                                         ? std::vector<uint32_t>{rows, 2, 1}
                                         : std::vector<uint32_t>{rows, 1, 2};
  WriteFile(dir_, "train-images-idx3-ubyte", IdxHeader(2051, dims) + pixels);
  if (Is("missing")) return;
  WriteFile(dir_, "train-labels-idx1-ubyte", IdxHeader(2049, {rows}) + labels);
}

void ReaderData::WriteCifar() {
  std::string text;
  for (int i = 0; i < num_rows_; ++i) {
    if (Is("extra_class")) text.push_back('\1');
    text.push_back(static_cast<char>(Label(i)));
    text += std::string(3 * 32 * 32, static_cast<char>(i));
  }
  WriteFile(dir_, "data_batch_1.bin", text);
}

void ReaderData::WriteImages() {
  const std::string half = dir_ + "/train";
  mkdir(half.c_str(), 0700);
  for (int i = 0; i < num_rows_; ++i) {
    // Class by class, so that a new row is the last one.
    const int label = Is("extra_class") && i == kRows - 1 ? 2 : i / 2;
    const std::string name = std::vector<std::string>{
        "cat", "dog", "elk"}[std::min(label, Is("extra_class") ? 2 : 1)];
    const std::string folder = Is("missing") ? half : half + "/" + name;
    mkdir(folder.c_str(), 0700);
    const Bytes png = EncodePng(
        {static_cast<uint8_t>(i), static_cast<uint8_t>(10 * i)}, 2, 1, {});
    WriteFile(folder, absl::StrCat(i, ".png"),
              std::string(png.begin(), png.end()));
  }
}

class SchemaTableTest : public testing::TestWithParam<Cell> {};

TEST_P(SchemaTableTest, IsReadByTheRunsSchemaOrRefused) {
  const Cell& cell = GetParam();
  const absl::StatusOr<Found> run = ReaderData(cell.reader, "none").Read({});
  ASSERT_THAT(run, IsOk());
  const absl::StatusOr<Found> now =
      ReaderData(cell.reader, cell.change)
          .Read(std::make_shared<const DataSchema>(run->schema));
  if (cell.effect == Effect::kRefused) {
    EXPECT_THAT(now.status().code(), AnyOf(absl::StatusCode::kInvalidArgument,
                                           absl::StatusCode::kNotFound));
    EXPECT_THAT(now.status().message(), HasSubstr(cell.words));
    return;
  }
  ASSERT_THAT(now, IsOk());
  ASSERT_GE(now->rows.size(), run->rows.size());
  for (size_t i = 0; i < run->rows.size(); ++i) {
    EXPECT_EQ(now->rows[i], run->rows[i]) << i;
  }
  if (!cell.words.empty()) {
    EXPECT_THAT(now->remarks, Contains(HasSubstr(cell.words)));
  }
}

class HalvesTest : public testing::TestWithParam<std::string> {};

TEST_P(HalvesTest, TheHalvesOfTheTrainingHalfAreDisjointAndAllOfIt) {
  constexpr int kManyRows = 24;
  ReaderData data(GetParam(), "none", kManyRows);
  const auto whole = data.Rows(Split::kTrain, 0, 0);
  ASSERT_THAT(whole, IsOk());
  // A synthetic set has a test half already.
  const double test_fraction = GetParam() == "synthetic" ? 0 : 0.3;
  std::vector<std::vector<float>> all;
  for (const Split half : {Split::kTrain, Split::kValidation, Split::kTest}) {
    if (half == Split::kTest && test_fraction == 0) continue;
    const auto rows = data.Rows(half, test_fraction, 0.3);
    ASSERT_THAT(rows, IsOk());
    EXPECT_LT(rows->size(), whole->size());
    all.insert(all.end(), rows->begin(), rows->end());
  }
  EXPECT_EQ(whole->size(), kManyRows);
  EXPECT_THAT(all, UnorderedElementsAreArray(*whole));
}

std::vector<std::string> SetReaders() { return DataSetRegistry::Names(); }

INSTANTIATE_TEST_SUITE_P(AllReaders, HalvesTest,
                         testing::ValuesIn(SetReaders()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

std::vector<Cell> PossibleCells() {
  std::vector<Cell> possible;
  for (const Cell& cell : Table()) {
    if (cell.effect != Effect::kImpossible) possible.push_back(cell);
  }
  return possible;
}

INSTANTIATE_TEST_SUITE_P(AllReaders, SchemaTableTest,
                         testing::ValuesIn(PossibleCells()),
                         [](const testing::TestParamInfo<Cell>& info) {
                           return absl::StrCat(info.param.reader, "_",
                                               info.param.change);
                         });

TEST(SchemaTableOfReadersTest, HasEachChangeOfEachReader) {
  std::set<std::string> cells;
  for (const Cell& cell : Table()) {
    EXPECT_TRUE(cells.insert(cell.reader + " " + cell.change).second);
    EXPECT_TRUE(cell.effect == Effect::kSame || !cell.words.empty());
  }
  std::vector<std::string> readers = DataSetRegistry::Names();
  for (const std::string& type : DataSetRegistry::Names()) {
    const auto found = DataSetRegistry::Find(type);
    ASSERT_THAT(found, IsOk());
    if (found->open_in_order != nullptr) readers.push_back(type + "_stream");
  }
  for (const std::string& reader : readers) {
    for (const char* const change : kChanges) {
      EXPECT_TRUE(cells.count(reader + " " + change))
          << reader << " " << change;
    }
  }
}

}  // namespace
}  // namespace muster
