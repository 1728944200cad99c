// The data sets in files of other formats than IDX: each gives the bits that
// the same pixels give as IDX, and names what is wrong with its files.
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/summary/event_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/example.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "tests/worker/input/file/npy_fixture.h"
#include "tests/worker/input/image/image_fixture.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRows = 5;
constexpr int kPixels = 6;

// WriteDataSet's pixels, for comparison.
int Pixel(int row, int pixel) { return 10 * row + pixel; }

std::string PixelBytes(int row) {
  std::string bytes;
  for (int p = 0; p < kPixels; ++p) {
    bytes.push_back(static_cast<char>(Pixel(row, p)));
  }
  return bytes;
}

class FileDataSetsTest : public testing::Test {
 protected:
  FileDataSetsTest() : dir_(MakeTempDir()) { spec_.set_dir(dir_); }

  absl::StatusOr<std::unique_ptr<DataSet>> Open(
      const std::string& type, Split split = Split::kTrain,
      const Shape& shape = Shape({1, 2, 3})) {
    spec_.set_type(type);
    return CreateDataSet(spec_, shape, /*seed=*/1, split);
  }

  absl::StatusOr<std::unique_ptr<DataSet>> OpenTargets(const std::string& type,
                                                       const Shape& shape,
                                                       int64_t num_targets) {
    spec_.set_type(type);
    return CreateDataSet(spec_, shape, /*seed=*/1, Split::kTrain,
                         {LabelKind::kTargets, num_targets});
  }

  static std::vector<float> Targets(const DataSet& data_set, int64_t row) {
    std::vector<float> values(data_set.example_shape().num_elements());
    std::vector<float> targets(data_set.num_targets());
    EXPECT_THAT(data_set.Read(row, {values.data(), nullptr, targets.data()}),
                IsOk());
    return targets;
  }

  static std::vector<float> Values(const DataSet& data_set, int64_t row) {
    std::vector<float> values(data_set.example_shape().num_elements());
    int32_t label = -1;
    EXPECT_THAT(data_set.Read(row, {values.data(), &label}), IsOk());
    values.push_back(static_cast<float>(label));
    return values;
  }

  // That the data set has the bits of the IDX files of kRows rows.
  void ExpectTheBitsOfIdx(const std::string& type) {
    const auto data_set = Open(type);
    ASSERT_THAT(data_set, IsOk());
    const std::string idx_dir = MakeTempDir();
    WriteDataSet(idx_dir, kRows, kRows);
    spec_.set_dir(idx_dir);
    const auto idx = Open("idx");
    ASSERT_THAT(idx, IsOk());
    ASSERT_EQ((*data_set)->num_examples(), kRows);
    EXPECT_EQ((*data_set)->num_classes(), (*idx)->num_classes());
    for (int i = 0; i < kRows; ++i) {
      EXPECT_EQ(Values(**data_set, i), Values(**idx, i)) << i;
    }
  }

  void WriteNpy(const std::string& part) {
    std::string images;
    std::vector<int64_t> labels;
    for (int i = 0; i < kRows; ++i) {
      images += PixelBytes(i);
      labels.push_back(i % 3);
    }
    WriteFile(dir_, part + "_images.npy",
              Npy(NpyText("|u1", absl::StrCat("(", kRows, ", 2, 3)")), images));
    WriteFile(
        dir_, part + "_labels.npy",
        Npy(NpyText("<i8", absl::StrCat("(", kRows, ",)")), RawBytes(labels)));
  }

  static std::string Record(const std::string& pixels, int64_t label) {
    Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["image"].mutable_bytes_list()->add_value(pixels);
    features["label"].mutable_int64_list()->add_value(label);
    std::string record;
    AppendRecord(example.SerializeAsString(), &record);
    return record;
  }

  static std::string FloatRecord(const std::vector<float>& x) {
    Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    for (const float value : x) {
      features["x"].mutable_float_list()->add_value(value);
    }
    features["label"].mutable_int64_list()->add_value(1);
    std::string record;
    AppendRecord(example.SerializeAsString(), &record);
    return record;
  }

  const std::string dir_;
  InputSpec spec_;
};

TEST_F(FileDataSetsTest, CsvGivesTheBitsOfIdx) {
  std::string text = "a,b,label,c,d,e,f\r\n";
  for (int i = 0; i < kRows; ++i) {
    for (int p = 0; p < kPixels; ++p) {
      // Nine digits: enough for every float.
      char number[32];
      snprintf(number, sizeof(number), "%.9g",
               static_cast<float>(Pixel(i, p)) / 255.0f);
      text += number;
      if (p == 1) absl::StrAppend(&text, ",", i % 3);
      text += p + 1 < kPixels ? "," : "\r\n";
    }
  }
  WriteFile(dir_, "train.csv.gz", Gzip(text));
  ExpectTheBitsOfIdx("csv");
}

TEST_F(FileDataSetsTest, CsvHasTheClassesOfTheTrainingHalf) {
  spec_.set_label_column("kind");
  WriteFile(dir_, "train-1.tsv", "kind\tx\ndog\t1\n");
  WriteFile(dir_, "train-2.TSV-00000-of-00001", "kind\tx\ncat\t2\nelk\t3\n");
  WriteFile(dir_, "test.tsv", "kind\tx\nelk\t-4.5\n");
  const auto train = Open("csv", Split::kTrain, Shape({1}));
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(Values(**train, 0), ElementsAre(1, 1));
  EXPECT_THAT(Values(**train, 1), ElementsAre(2, 0));
  const auto test = Open("csv", Split::kTest, Shape({1}));
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT(Values(**test, 0), ElementsAre(-4.5f, 2));
  EXPECT_EQ((*test)->num_classes(), 3);
}

TEST_F(FileDataSetsTest, TheTrainingHalfSaysWhetherCsvLabelsAreNames) {
  // Names that the test half does not have.
  WriteFile(dir_, "train.csv", "x,label\n1,b7\n2,c\n3,a\n");
  WriteFile(dir_, "test.csv", "x,label\n5,c\n");
  const auto named = Open("csv", Split::kTest, Shape({1}));
  ASSERT_THAT(named, IsOk());
  EXPECT_THAT(Values(**named, 0), ElementsAre(5, 2));
  // Numbers, and a name in the test half.
  WriteFile(dir_, "train.csv", "x,label\n1,0\n2,1\n");
  EXPECT_THAT(Open("csv", Split::kTest, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.csv"), HasSubstr("'c'"))));
  WriteFile(dir_, "test.csv", "x,label\n5,-1\n");
  EXPECT_THAT(Open("csv", Split::kTest, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("found -1"), HasSubstr("test.csv"))));
}

TEST_F(FileDataSetsTest, ATypingErrorAmongCsvLabelsMakesNoNames) {
  WriteFile(dir_, "train.csv", "x,label\n1,0\n2,O\n");
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("line 3"), HasSubstr("'O' and '0'"))));
}

TEST_F(FileDataSetsTest, RefusesAColumnWhereThereAreNone) {
  WriteDataSet(dir_, kRows, kRows);
  spec_.set_label_column("kind");
  EXPECT_THAT(Open("idx"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("input.label_column")));
}

TEST_F(FileDataSetsTest, CsvNamesWhatIsWrong) {
  WriteFile(dir_, "train.csv", "x,label\n1,0\n2\n");
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("train.csv"), HasSubstr("line 3"))));
  WriteFile(dir_, "train.csv", "x,y,label\n1,2,0\n");
  EXPECT_THAT(
      Open("csv", Split::kTrain, Shape({1})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("model.input_shape is [1]"), HasSubstr("[2]"))));
  spec_.set_label_column("class");
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'class'"), HasSubstr("label"))));
}

TEST_F(FileDataSetsTest, SkippingABadCsvRowIsAnErrorOfThatRowAlone) {
  spec_.set_on_bad_record(SKIP);
  WriteFile(dir_, "train.csv", "x,label\n1,one\n2\nnan,one\n4,two\n,x\n");
  const auto data_set = Open("csv", Split::kTrain, Shape({1}));
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 5);
  EXPECT_THAT((*data_set)->ClassNames(), ElementsAre("one", "two"));
  EXPECT_THAT(Values(**data_set, 0), ElementsAre(1, 0));
  EXPECT_THAT(Values(**data_set, 3), ElementsAre(4, 1));
  for (const int row : {1, 2, 4}) {
    float value = 0;
    EXPECT_THAT((*data_set)->Read(row, {&value}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("line ", row + 2, " of '"))));
  }
}

TEST_F(FileDataSetsTest, ASetOfBadRowsIsAnError) {
  spec_.set_on_bad_record(SKIP);
  WriteFile(dir_, "train.csv", "x,label\n1\n2\n");
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("2 rows"), HasSubstr("line 3"))));
  WriteFile(dir_, "train.tfrecord", Record("short", -1));
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("1 rows")));
}

TEST_F(FileDataSetsTest, SkippingABadTfRecordIsAnErrorOfThatRowAlone) {
  spec_.set_on_bad_record(SKIP);
  std::string damaged = Record(PixelBytes(0), 1);
  damaged[14] ^= 1;
  WriteFile(dir_, "train.tfrecord",
            damaged + Record(PixelBytes(1), -7) + Record("short", 2) +
                Record(PixelBytes(3), 3));
  const auto data_set = Open("tfrecord");
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 4);
  EXPECT_EQ(Values(**data_set, 3).back(), 3);
  std::vector<float> values(kPixels);
  for (const int row : {0, 1, 2}) {
    EXPECT_THAT((*data_set)->Read(row, {values.data()}).message(),
                HasSubstr(absl::StrCat("record ", row, " of")))
        << row;
  }
}

TEST_F(FileDataSetsTest, NpyGivesTheBitsOfIdx) {
  WriteNpy("train");
  ExpectTheBitsOfIdx("npy");
}

TEST_F(FileDataSetsTest, NpyTurnsChannelsLastIntoChannelsFirst) {
  // Two pixels of three channels.
  const std::vector<float> image = {1, 2, 3, 4, 5, 6};
  WriteFile(dir_, "train_x.npy",
            Npy(NpyText("<f4", "(1, 1, 2, 3)"), RawBytes(image)));
  WriteFile(dir_, "train_y.npy",
            Npy(NpyText("|u1", "(1,)"), std::string(1, '\1')));
  const auto data_set = Open("npy", Split::kTrain, Shape({3, 1, 2}));
  ASSERT_THAT(data_set, IsOk());
  EXPECT_THAT(Values(**data_set, 0), ElementsAre(1, 4, 2, 5, 3, 6, 1));
}

TEST_F(FileDataSetsTest, NpyPairsPiecesByTheirNumbers) {
  for (const int piece : {1, 10}) {
    const std::string byte(1, static_cast<char>(piece));
    WriteFile(dir_, absl::StrCat("train_", piece, ".npy"),
              Npy(NpyText("|u1", "(1, 1)"), byte));
    WriteFile(dir_, absl::StrCat("train_", piece, "_labels.npy"),
              Npy(NpyText("|u1", "(1,)"), byte));
  }
  const auto data_set = Open("npy", Split::kTrain, Shape({1}));
  ASSERT_THAT(data_set, IsOk());
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> row = Values(**data_set, i);
    EXPECT_EQ(row[0], row[1] / 255.0f);
  }
  ASSERT_EQ(rename((dir_ + "/train_10_labels.npy").c_str(),
                   (dir_ + "/train_7_labels.npy").c_str()),
            0);
  EXPECT_THAT(Open("npy", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("train_7_labels.npy")));
}

TEST_F(FileDataSetsTest, NpyWantsLabelsForItsExamples) {
  WriteNpy("train");
  ASSERT_EQ(remove((dir_ + "/train_labels.npy").c_str()), 0);
  EXPECT_THAT(Open("npy"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("0 of labels")));
  WriteFile(dir_, "train_labels.npy",
            Npy(NpyText("<i8", "(1,)"), RawBytes(std::vector<int64_t>{0})));
  EXPECT_THAT(Open("npy"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("each of 5 examples")));
  WriteFile(dir_, "train_labels.npy",
            Npy(NpyText("<i8", "(5,)"),
                RawBytes(std::vector<int64_t>{0, 1, -7, 0, 0})));
  EXPECT_THAT(Open("npy"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("row 2 of"), HasSubstr("found -7"),
                             HasSubstr("labels.npy"))));
}

TEST_F(FileDataSetsTest, CifarReadsBothHalves) {
  std::string row(1 + 3 * 32 * 32, '\0');
  row[0] = 7;
  row[1] = static_cast<char>(255);
  WriteFile(dir_, "data_batch_1.bin", row);
  WriteFile(dir_, "data_batch_2.bin", row + row);
  WriteFile(dir_, "test_batch.bin", row);
  const auto train = Open("cifar", Split::kTrain, Shape({3, 32, 32}));
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ((*train)->num_examples(), 3);
  EXPECT_EQ((*train)->num_classes(), 10);
  const std::vector<float> values = Values(**train, 2);
  EXPECT_EQ(values.front(), 1.0f);
  EXPECT_EQ(values[1], 0.0f);
  EXPECT_EQ(values.back(), 7);
  EXPECT_THAT(Open("cifar", Split::kTest, Shape({3, 32, 32})), IsOk());
  EXPECT_THAT(
      Open("cifar", Split::kTest, Shape({3, 28, 28})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[3, 32, 32]")));
}

TEST_F(FileDataSetsTest, TfRecordGivesTheBitsOfIdx) {
  ASSERT_EQ(mkdir((dir_ + "/train").c_str(), 0700), 0);
  std::string first;
  std::string second;
  for (int i = 0; i < kRows; ++i) {
    (i < 2 ? first : second) += Record(PixelBytes(i), i % 3);
  }
  WriteFile(dir_ + "/train", "images.tfrecord-00000-of-00002", first);
  WriteFile(dir_ + "/train", "images.tfrecord-00001-of-00002", second);
  ExpectTheBitsOfIdx("tfrecord");
}

TEST_F(FileDataSetsTest, TfRecordNamesWhatIsWrong) {
  const std::string record = Record(PixelBytes(1), 1);
  WriteFile(dir_, "train.tfrecord", record + Record("short", 1));
  const auto data_set = Open("tfrecord");
  ASSERT_THAT(data_set, IsOk());
  std::vector<float> values(kPixels);
  int32_t label = 0;
  EXPECT_THAT((*data_set)->Read(1, {values.data(), &label}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("record 1 of"), HasSubstr("found 5"))));
  spec_.set_label_column("class");
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("'class'")));
  spec_.clear_label_column();
  std::string damaged = record;
  damaged[14] ^= 1;
  WriteFile(dir_, "train.tfrecord", damaged);
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kDataLoss,
                                         HasSubstr("train.tfrecord")));
}

TEST_F(FileDataSetsTest, NumbersThatAreNotFiniteAreBadRows) {
  const std::vector<double> values = {1, 2, 3, 1e300, 5, 6};
  WriteFile(dir_, "train.npy", Npy(NpyText("<f8", "(3, 2)"), RawBytes(values)));
  WriteFile(dir_, "train_labels.npy",
            Npy(NpyText("|u1", "(3,)"), std::string(3, '\1')));
  WriteFile(
      dir_, "train.tfrecord",
      FloatRecord({1, 2}) + FloatRecord({3, HUGE_VALF}) + FloatRecord({5, 6}));
  for (const char* type : {"npy", "tfrecord"}) {
    const auto data_set = Open(type, Split::kTrain, Shape({2}));
    ASSERT_THAT(data_set, IsOk());
    float row[2];
    EXPECT_THAT((*data_set)->Read(0, {row}), IsOk());
    EXPECT_THAT((*data_set)->Read(2, {row}), IsOk());
    EXPECT_THAT((*data_set)->Read(1, {row}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("1 of '" + dir_ + "/train."),
                               HasSubstr(": wanted a finite number, found "))))
        << type;
  }
}

class ImageFolderTest : public FileDataSetsTest {
 protected:
  // PNG's.
  static constexpr int kGrey = 0;
  static constexpr int kColour = 2;

  // Writes an image into the folder of a class.
  void WritePng(const std::string& folder, const std::string& name,
                const std::string& pixels, int width, int height,
                int color_type = kGrey) {
    std::string path = dir_;
    for (const absl::string_view part : absl::StrSplit(folder, '/')) {
      absl::StrAppend(&path, "/", part);
      mkdir(path.c_str(), 0700);
    }
    const Bytes png = EncodePng(Bytes(pixels.begin(), pixels.end()), width,
                                height, {color_type});
    WriteFile(path, name, std::string(png.begin(), png.end()));
  }
};

TEST_F(ImageFolderTest, PngGivesTheBitsOfIdx) {
  // IDX's row i is of class i % 3; a folder has its classes one by one.
  const std::vector<int> order = {0, 3, 1, 4, 2};
  for (const int row : order) {
    WritePng(absl::StrCat("train/", row % 3), absl::StrCat(row, ".png"),
             PixelBytes(row), 3, 2);
  }
  const auto data_set = Open("image_folder");
  ASSERT_THAT(data_set, IsOk());
  ASSERT_EQ((*data_set)->num_examples(), kRows);
  const std::string idx_dir = MakeTempDir();
  WriteDataSet(idx_dir, kRows, kRows);
  spec_.set_dir(idx_dir);
  const auto idx = Open("idx");
  ASSERT_THAT(idx, IsOk());
  for (int i = 0; i < kRows; ++i) {
    EXPECT_EQ(Values(**data_set, i), Values(**idx, order[i])) << i;
  }
}

TEST_F(ImageFolderTest, TheTestHalfHasTheClassesOfTheTrainingHalf) {
  WritePng("train/ant", "a.png", PixelBytes(0), 3, 2);
  WritePng("train/bee", "b.png", PixelBytes(1), 3, 2);
  WritePng("test/bee", "c.png", PixelBytes(2), 3, 2);
  const auto test = Open("image_folder", Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_EQ(Values(**test, 0).back(), 1);
  EXPECT_EQ((*test)->num_classes(), 2);
  WritePng("test/cat", "d.png", PixelBytes(2), 3, 2);
  EXPECT_THAT(Open("image_folder", Split::kTest),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'cat'"), HasSubstr("ant, bee"))));
}

TEST_F(ImageFolderTest, ScalesToInputShapeAndOnlyThen) {
  WritePng("train/0", "a.png", std::string(4 * 4, '\x80'), 4, 4);
  EXPECT_THAT(Open("image_folder"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("a.png"), HasSubstr("found 4 x 4"),
                             HasSubstr("--set=input.shape=1,2,3"))));
  for (const int dim : {1, 2, 3}) spec_.add_shape(dim);
  const auto data_set = Open("image_folder");
  ASSERT_THAT(data_set, IsOk());
  std::vector<float> wanted(kPixels, 128 / 255.0f);
  wanted.push_back(0);
  EXPECT_EQ(Values(**data_set, 0), wanted);
}

TEST_F(ImageFolderTest, NamesADamagedImageAndAnEmptyFolder) {
  EXPECT_THAT(Open("image_folder"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/train")));
  WritePng("train/0", "a.png", PixelBytes(0), 3, 2);
  WriteFile(dir_ + "/train/0", "b.jpg", "no image");
  const auto data_set = Open("image_folder");
  ASSERT_THAT(data_set, IsOk());
  std::vector<float> values(kPixels);
  int32_t label = 0;
  EXPECT_THAT(
      (*data_set)->Read(1, {values.data(), &label}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("train/0/b.jpg")));
}

TEST_F(ImageFolderTest, AnImageThatHasGoneIsNamedOnce) {
  WritePng("train/0", "a.png", PixelBytes(0), 3, 2);
  const auto data_set = Open("image_folder");
  ASSERT_THAT(data_set, IsOk());
  const std::string path = dir_ + "/train/0/a.png";
  ASSERT_EQ(std::remove(path.c_str()), 0);
  std::vector<float> values(kPixels);
  int32_t label = 0;
  EXPECT_THAT((*data_set)->Read(0, {values.data(), &label}),
              StatusIs(absl::StatusCode::kNotFound,
                       absl::StrCat("reading '", path,
                                    "': No such file or directory")));
}

TEST_F(ImageFolderTest, SaysWhatItPassesOver) {
  WritePng("train/cat/a", "1.png", PixelBytes(0), 3, 2);
  WriteFile(dir_ + "/train/cat", "2.gif", "GIF89a");
  const auto data_set = Open("image_folder");
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 1);
  EXPECT_THAT((*data_set)->Remarks(),
              ElementsAre("'" + dir_ +
                          "/train' has 1 entry that is not read (1 "
                          ".gif): 'cat/2.gif'"));
}

TEST_F(ImageFolderTest, SaysThatColourIsLostAndByWhichFlagsItIsNot) {
  WritePng("train/cat", "a.png", std::string(3 * 70 * 80, 'x'), 70, 80,
           kColour);
  const auto remarks = [this](int64_t channels, int64_t side) {
    spec_.clear_shape();
    for (const int64_t dim : {channels, side, side}) spec_.add_shape(dim);
    const auto data_set =
        Open("image_folder", Split::kTrain, Shape({channels, side, side}));
    EXPECT_THAT(data_set, IsOk());
    return (*data_set)->Remarks();
  };
  EXPECT_THAT(remarks(1, 28),
              ElementsAre("images in colour become grey, and those of 70 x 80 "
                          "become 28 x 28, as the model reads [1, 28, 28]; in "
                          "colour: --set=input.shape=3,64,64 "
                          "--set=model.input_shape=3,64,64"));
  EXPECT_THAT(remarks(3, 28), IsEmpty());
  // A crop fixes the size that the model reads.
  MapSpec* const crop = spec_.add_map();
  crop->set_type("random_crop");
  Attr* const size = crop->add_attr();
  size->set_name("size");
  size->set_i(20);
  spec_.clear_shape();
  for (const int64_t dim : {1, 28, 28}) spec_.add_shape(dim);
  const auto cropped = Open("image_folder", Split::kTrain, Shape({1, 20, 20}));
  ASSERT_THAT(cropped, IsOk());
  EXPECT_THAT((*cropped)->Remarks(),
              ElementsAre(HasSubstr("--set=input.shape=3,28,28 "
                                    "--set=model.input_shape=3,20,20")));
}

TEST_F(ImageFolderTest, SaysNothingOfGreyImages) {
  WritePng("train/cat", "a.png", std::string(80 * 80, 'x'), 80, 80);
  for (const int dim : {1, 2, 3}) spec_.add_shape(dim);
  const auto data_set = Open("image_folder");
  ASSERT_THAT(data_set, IsOk());
  EXPECT_THAT((*data_set)->Remarks(), IsEmpty());
}

TEST_F(ImageFolderTest, ShrinksJpegsWholeUnlessDecodeIsScaled) {
  const Bytes jpeg = EncodeJpeg(NoisyPixels(64, 64), 64, 64, 3);
  ASSERT_EQ(mkdir((dir_ + "/train").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((dir_ + "/train/cat").c_str(), 0700), 0);
  WriteFile(dir_ + "/train/cat", "a.jpg",
            std::string(jpeg.begin(), jpeg.end()));
  for (const int dim : {3, 12, 12}) spec_.add_shape(dim);
  const auto values = [this](ImageDecode decode) {
    spec_.set_decode(decode);
    const auto data_set =
        Open("image_folder", Split::kTrain, Shape({3, 12, 12}));
    EXPECT_THAT(data_set, IsOk());
    return Values(**data_set, 0);
  };
  const std::vector<float> full = values(FULL);
  EXPECT_NE(values(SCALED), full);
  EXPECT_EQ(values(FULL), full);
}

TEST_F(FileDataSetsTest, DecodeIsRefusedWithoutImageFiles) {
  WriteFile(dir_, "train.csv", "label,a\n0,1\n");
  spec_.set_decode(SCALED);
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("input.decode: SCALED"),
                             HasSubstr("train.csv"))));
  WriteFile(dir_, "train.tfrecord", Record(PixelBytes(0), 1));
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("input.decode: SCALED")));
}

// As TensorFlow writes images.
TEST_F(ImageFolderTest, TfRecordReadsImageFiles) {
  const auto record = [](int row, int width, int height) {
    const std::string pixels = PixelBytes(row);
    const Bytes png =
        EncodePng(Bytes(pixels.begin(), pixels.end()), width, height, {});
    return Record(std::string(png.begin(), png.end()), row % 3);
  };
  std::string records;
  for (int i = 0; i < kRows; ++i) records += record(i, 3, 2);
  WriteFile(dir_, "train.tfrecord", records);
  ExpectTheBitsOfIdx("tfrecord");
  spec_.set_dir(dir_);
  WriteFile(dir_, "train.tfrecord", records + record(0, 2, 3));
  const auto data_set = Open("tfrecord");
  ASSERT_THAT(data_set, IsOk());
  std::vector<float> values(kPixels);
  EXPECT_THAT((*data_set)->Read(kRows, {values.data()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("record 5 of"), HasSubstr("'image'"),
                             HasSubstr("found 2 x 3"))));
  for (const int dim : {1, 2, 3}) spec_.add_shape(dim);
  const auto scaled = Open("tfrecord");
  ASSERT_THAT(scaled, IsOk());
  EXPECT_THAT((*scaled)->Read(kRows, {values.data()}), IsOk());
}

class InputMapTest : public FileDataSetsTest {
 protected:
  void AddStage(const std::string& type, const std::string& attr = "",
                int64_t value = 0) {
    MapSpec& stage = *spec_.add_map();
    stage.set_type(type);
    if (attr.empty()) return;
    stage.add_attr()->set_name(attr);
    stage.mutable_attr(0)->set_i(value);
  }

  static std::vector<float> InEpoch(const DataSet& data_set, int64_t row,
                                    int64_t epoch) {
    std::vector<float> values(data_set.example_shape().num_elements());
    int32_t label = -1;
    EXPECT_THAT(data_set.ReadInEpoch(row, epoch, {values.data(), &label}),
                IsOk());
    return values;
  }
};

TEST_F(InputMapTest, MapsWhatTheDataSetHasToWhatTheModelReads) {
  WriteDataSet(dir_, kRows, kRows);
  for (const int dim : {1, 2, 3}) spec_.add_shape(dim);
  AddStage("resize", "size", 1);
  const auto data_set = Open("idx", Split::kTrain, Shape({1}));
  ASSERT_THAT(data_set, IsOk());
  // The middle of six pixels is the mean of the two in the middle column.
  const std::vector<float> values = Values(**data_set, 1);
  EXPECT_NEAR(values[0], (Pixel(1, 1) + Pixel(1, 4)) / 2.0 / 255, 1e-6);
  EXPECT_EQ(values[1], 1);
}

TEST_F(InputMapTest, VariesAnExampleFromEpochToEpochAndNotAtEvaluation) {
  WriteDataSet(dir_, kRows, kRows);
  AddStage("random_flip");
  const auto data_set = Open("idx");
  ASSERT_THAT(data_set, IsOk());
  const std::vector<float> plain = Values(**data_set, 2);
  int flipped = 0;
  for (int64_t epoch = 0; epoch < 64; ++epoch) {
    const std::vector<float> once = InEpoch(**data_set, 2, epoch);
    EXPECT_EQ(once, InEpoch(**data_set, 2, epoch));
    flipped += once[0] == plain[2];
  }
  // A fair coin has fewer or more in 1 of 10^6 seeds; this seed is fixed.
  EXPECT_GT(flipped, 12);
  EXPECT_LT(flipped, 52);
}

TEST_F(InputMapTest, NamesTheStageThatIsWrong) {
  WriteDataSet(dir_, kRows, kRows);
  AddStage("random_flip");
  AddStage("resise");
  EXPECT_THAT(Open("idx"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("input.map"), HasSubstr("stage 2 of 2"),
                             HasSubstr("'resize'"))));
  spec_.mutable_map()->RemoveLast();
  AddStage("resize", "size", 5);
  EXPECT_THAT(Open("idx"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("float32 [1, 5, 5]"),
                             HasSubstr("model.input_shape wants"))));
  spec_.clear_map();
  spec_.add_shape(7);
  EXPECT_THAT(Open("idx"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("input.shape is [7]")));
}

TEST_F(FileDataSetsTest, CsvTargetsAreTheNamedColumns) {
  WriteFile(dir_, "train.csv", "a,b,c\n1,2,3.5\n4,-5,0\n");
  spec_.set_label_column("c, a");
  const auto data_set = OpenTargets("csv", Shape({1}), 2);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_THAT(Targets(**data_set, 0), ElementsAre(3.5f, 1));
  EXPECT_THAT(Targets(**data_set, 1), ElementsAre(0, 4));
  EXPECT_THAT(OpenTargets("csv", Shape({1}), 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("compares 3 outputs")));
  spec_.set_label_column("c,d");
  EXPECT_THAT(OpenTargets("csv", Shape({2}), 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("unknown column 'd'")));
}

TEST_F(FileDataSetsTest, NpyTargetsAreTheArrayOfLabels) {
  WriteFile(dir_, "train.npy",
            Npy(NpyText("<f4", "(2, 1)"), RawBytes<float>({7, 8})));
  WriteFile(dir_, "train_labels.npy",
            Npy(NpyText("<f4", "(2, 2)"), RawBytes<float>({1, 2, 3, 4.5f})));
  const auto data_set = OpenTargets("npy", Shape({1}), 2);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_THAT(Targets(**data_set, 1), ElementsAre(3, 4.5f));
  EXPECT_THAT(OpenTargets("npy", Shape({1}), 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted 1 value(s)")));
}

TEST_F(FileDataSetsTest, TfRecordTargetsAreAListOfNumbers) {
  Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"].mutable_float_list()->add_value(7);
  for (const float target : {0.5f, -1.0f}) {
    features["y"].mutable_float_list()->add_value(target);
  }
  std::string record;
  AppendRecord(example.SerializeAsString(), &record);
  WriteFile(dir_, "train.tfrecord", record);
  spec_.set_label_column("y");
  const auto data_set = OpenTargets("tfrecord", Shape({1}), 2);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_THAT(Targets(**data_set, 0), ElementsAre(0.5f, -1));
}

TEST_F(FileDataSetsTest, ClassesStandForTargetsWhereThereAreNone) {
  WriteDataSet(dir_, kRows, kRows);
  const auto one = OpenTargets("idx", Shape({6}), 1);
  ASSERT_THAT(one, IsOk());
  const float label =
      Values(**Open("idx", Split::kTrain, Shape({6})), 1).back();
  EXPECT_THAT(Targets(**one, 1), ElementsAre(label));
  const auto ten = OpenTargets("idx", Shape({6}), 10);
  ASSERT_THAT(ten, IsOk());
  std::vector<float> wanted(10, 0.0f);
  wanted[static_cast<size_t>(label)] = 1;
  EXPECT_EQ(Targets(**ten, 1), wanted);
  EXPECT_THAT(OpenTargets("idx", Shape({6}), 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("compares 2 outputs")));
}

TEST_F(FileDataSetsTest, WithoutLabelsNeitherTheyNorTheTrainingHalfAreWanted) {
  WriteFile(dir_, "test.csv", "a,b\n1,2\n3,4\n");
  const auto open = [this](const std::string& type) {
    spec_.set_type(type);
    return CreateDataSet(spec_, Shape({2}), /*seed=*/1, Split::kTest,
                         {LabelKind::kNone});
  };
  ASSERT_THAT(open("csv"), IsOk());
  WriteFile(dir_, "test.csv", "a,label,b\n1,cat,2\n3,dog,4\n");
  const auto csv = open("csv");
  ASSERT_THAT(csv, IsOk());
  std::vector<float> values(2);
  ASSERT_THAT((*csv)->Read(1, {values.data()}), IsOk());
  EXPECT_THAT(values, ElementsAre(3, 4));
  WriteFile(dir_, "test.npy",
            Npy(NpyText("<f4", "(2, 2)"), RawBytes<float>({1, 2, 3, 4})));
  const auto npy = open("npy");
  ASSERT_THAT(npy, IsOk());
  EXPECT_EQ((*npy)->num_examples(), 2);
  EXPECT_EQ((*npy)->num_classes(), 0);
}

TEST_F(ImageFolderTest, WithoutLabelsImagesNeedNoFolders) {
  WritePng("test", "b.png", PixelBytes(1), 3, 2);
  WritePng("test", "a.png", PixelBytes(0), 3, 2);
  spec_.set_type("image_folder");
  const auto data_set = CreateDataSet(spec_, Shape({1, 2, 3}), /*seed=*/1,
                                      Split::kTest, {LabelKind::kNone});
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 2);
  EXPECT_EQ((*data_set)->RowName(1), dir_ + "/test/b.png");
}

TEST_F(FileDataSetsTest, SaysWhichFilesItLookedFor) {
  EXPECT_THAT(Open("csv"), StatusIs(absl::StatusCode::kNotFound,
                                    AllOf(HasSubstr("begin with train"),
                                          HasSubstr(".csv or .tsv"),
                                          HasSubstr("found nothing"))));
  WriteFile(dir_, "training.txt", "");
  EXPECT_THAT(Open("npy", Split::kTest),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("begin with test"),
                             HasSubstr("found training.txt"))));
  spec_.set_dir(dir_ + "/nowhere");
  EXPECT_THAT(Open("cifar", Split::kTrain, Shape({3, 32, 32})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
  spec_.clear_dir();
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("input.dir")));
}

}  // namespace
}  // namespace muster
