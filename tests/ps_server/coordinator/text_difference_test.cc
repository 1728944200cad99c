#include "ps_server/coordinator/text_difference.h"

#include <string>

#include "common/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTraining[] =
    "model {\n"
    "  name: \"mlp\"\n"
    "}\n"
    "optimizer {\n"
    "  name: \"adam\"\n"
    "  attr {\n"
    "    name: \"beta1\"\n"
    "    f: 0.9\n"
    "  }\n"
    "  attr {\n"
    "    name: \"learning_rate\"\n"
    "    f: 0.001\n"
    "  }\n"
    "}\n"
    "seed: 1\n";

std::string Replace(std::string text, const std::string& from,
                    const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(TextDifferenceTest, NamesTheFieldWithTheNameOfItsMessage) {
  EXPECT_EQ(FirstDifference(kTraining, Replace(kTraining, "0.001", "0.5")),
            "optimizer.attr 'learning_rate': line 12 is 'f: 0.5', there it is "
            "'f: 0.001'");
  EXPECT_THAT(FirstDifference(kTraining, Replace(kTraining, "mlp", "cnn")),
              StartsWith("model: line 2 is 'name: \"cnn\"'"));
}

TEST(TextDifferenceTest, AFieldOfTheWholeNeedsNoPath) {
  EXPECT_EQ(
      FirstDifference(kTraining, Replace(kTraining, "seed: 1", "seed: 2")),
      "line 15 is 'seed: 2', there it is 'seed: 1'");
}

TEST(TextDifferenceTest, OneMayBeLonger) {
  EXPECT_EQ(FirstDifference("a: 1", "a: 1\nb: 2"),
            "line 2 is 'b: 2', there it is missing");
  EXPECT_EQ(FirstDifference("a: 1\nb: 2", "a: 1"),
            "line 2 is missing, there it is 'b: 2'");
}

TEST(TextDifferenceTest, TakesAnyText) {
  EXPECT_THAT(FirstDifference("  {\n }\n{", "\n\n\x01   {\n      x"),
              HasSubstr("line 1 is ''"));
  EXPECT_EQ(FirstDifference("", ""),
            "the fingerprints differ, the texts do not");
}

// As sent: the digest is of the whole text.
DataSection MakeSection(const std::string& whole, size_t sent_bytes) {
  DataSection section;
  section.set_name("classes");
  section.set_digest(Fingerprint64(whole));
  section.set_text(whole.substr(0, sent_bytes));
  return section;
}

DataSection MakeSection(const std::string& whole) {
  return MakeSection(whole, whole.size());
}

TEST(TextDifferenceTest, SectionsDifferInALineOrItsLack) {
  const DataSection known = MakeSection("cat\ndog\n");
  EXPECT_EQ(SectionDifference(known, MakeSection("cat\ncow\n"), "OWNER"),
            "classes: line 2 is 'cow' here, 'dog' at OWNER");
  EXPECT_EQ(SectionDifference(known, MakeSection("cat\n"), "OWNER"),
            "classes: line 2 is missing here, 'dog' at OWNER");
  EXPECT_EQ(SectionDifference(known, MakeSection(""), "OWNER"),
            "classes: line 1 is missing here, 'cat' at OWNER");
}

TEST(TextDifferenceTest, SectionsOfOneLineNeedNoNumber) {
  EXPECT_EQ(SectionDifference(MakeSection("7\n"), MakeSection("6\n"), "OWNER"),
            "classes: '6' here, '7' at OWNER");
}

TEST(TextDifferenceTest, BehindTheEndOfACutSectionNothingIsKnown) {
  const DataSection known = MakeSection("a\nb\nc\n");
  const DataSection cut = MakeSection("a\nb\nx\n", 4);
  const std::string wanted =
      "classes: they differ after the first 2 lines, which alone are sent";
  EXPECT_EQ(SectionDifference(known, cut, "OWNER"), wanted);
  EXPECT_EQ(SectionDifference(cut, known, "OWNER"), wanted);
  EXPECT_EQ(SectionDifference(cut, MakeSection("a\ny\n"), "OWNER"),
            "classes: line 2 is 'y' here, 'b' at OWNER");
}

TEST(TextDifferenceTest, ForgedSectionsArePrintedWithCare) {
  DataSection forged = MakeSection("a\n");
  forged.set_digest(1);
  forged.set_name("\x1b[31m");
  EXPECT_EQ(SectionDifference(MakeSection("a\n"), forged, "OWNER"),
            "\\x1b[31m: they differ after the first 1 lines, which alone are "
            "sent");
}

}  // namespace
}  // namespace muster
