#include "common/config/command_line.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/escape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int, task_index, 0, "Index of this task.");
ABSL_FLAG(std::string, cluster, "", "The cluster file.\nJSON or text.");
ABSL_FLAG(bool, standalone, false, "One process.");
ABSL_FLAG(absl::Duration, max_wait, absl::Minutes(5), "Patience.");
ABSL_FLAG(absl::Duration, progress_every, absl::Seconds(10), "Lines.");
ABSL_FLAG(std::string, set, "", "Overrides path=value.");
ABSL_FLAG(std::vector<std::string>, ensemble, {}, "Folders.");
ABSL_FLAG(bool, list, false, "Of another program.");

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommandLineTest : public testing::Test {
 protected:
  static CommandLine Parse(const std::vector<std::string>& args) {
    CommandLineOptions options;
    options.program = "worker";
    options.summary = "Trains. Example: worker --standalone";
    options.version = "muster 1.2.3";
    options.groups = {
        {"Cluster", {"cluster", "task_index", "standalone"}},
        {"Training", {"max_wait", "progress_every", "set", "ensemble"}}};
    options.repeated_flags = {"set"};
    options.flags_from_zero = {"progress_every"};
    options.path_flags = {"cluster", "ensemble"};
    return ParseCommandLine(args, options);
  }

  static std::string WriteFlagfile(const std::string& text) {
    const std::string path = absl::StrCat(testing::TempDir(), "/flagfile");
    std::ofstream(path) << text;
    return path;
  }

  // Restores the flags after each test.
  absl::FlagSaver saver_;
};

TEST_F(CommandLineTest, SetsFlagsInEveryForm) {
  const CommandLine line = Parse({"--task_index=3", "--cluster", "a=b.json",
                                  "-standalone", "--max_wait=10s"});
  EXPECT_FALSE(line.exit_code.has_value()) << line.error;
  EXPECT_EQ(absl::GetFlag(FLAGS_task_index), 3);
  EXPECT_EQ(absl::GetFlag(FLAGS_cluster), "a=b.json");
  EXPECT_TRUE(absl::GetFlag(FLAGS_standalone));
  EXPECT_EQ(absl::GetFlag(FLAGS_max_wait), absl::Seconds(10));
  EXPECT_FALSE(Parse({"--nostandalone"}).exit_code.has_value());
  EXPECT_FALSE(absl::GetFlag(FLAGS_standalone));
  EXPECT_FALSE(
      Parse({"--standalone=true", "--task_index", "-1"}).exit_code.has_value());
  EXPECT_TRUE(absl::GetFlag(FLAGS_standalone));
  EXPECT_EQ(absl::GetFlag(FLAGS_task_index), -1);
}

TEST_F(CommandLineTest, ADurationWithoutAUnitIsInSeconds) {
  struct Case {
    const char* arg;
    absl::Duration wanted;
  };
  for (const Case& c : {Case{"--max_wait=2", absl::Seconds(2)},
                        Case{"--max_wait=0.5", absl::Milliseconds(500)},
                        Case{"--max_wait=1e3", absl::Seconds(1000)},
                        Case{"--max_wait=1h30m", absl::Minutes(90)}}) {
    const CommandLine line = Parse({c.arg});
    EXPECT_FALSE(line.exit_code.has_value()) << line.error;
    EXPECT_EQ(absl::GetFlag(FLAGS_max_wait), c.wanted) << c.arg;
  }
  EXPECT_FALSE(Parse({"--progress_every=0"}).exit_code.has_value());
  EXPECT_EQ(absl::GetFlag(FLAGS_progress_every), absl::ZeroDuration());
}

TEST_F(CommandLineTest, APathThatMeansSomethingElse_IsRefused) {
  for (const char* path : {"s3://bucket/run",
                           "gs://b/r",
                           "hdfs://host:9000/r",
                           "file:///data/r",
                           "abfs+ssl://b",
                           "~",
                           "~/run",
                           "~user",
                           "~user/run",
                           "$HOME",
                           "$HOME/run",
                           "/data/$USER/run",
                           "${HOME}/run",
                           "run-${JOB}",
                           "$(pwd)/run",
                           "run_$SLURM_JOB_ID",
                           "run-$USER/x",
                           "a/$RUN.1",
                           "`date`",
                           "s3:/b/r",
                           "file:/data",
                           "\"r\"",
                           "'r'",
                           "r ",
                           " /data/r",
                           "r\r"}) {
    for (const char* flag : {"--cluster=", "--ensemble=a,", "--flagfile="}) {
      const CommandLine line = Parse({absl::StrCat(flag, path)});
      EXPECT_EQ(line.exit_code, 2) << flag << path;
      EXPECT_THAT(line.error,
                  AllOf(HasSubstr(EscapeForLog(path)),
                        AnyOf(HasSubstr("path"), HasSubstr("leave"))));
    }
  }
}

TEST_F(CommandLineTest, APathWithOddCharacters_IsTaken) {
  for (const char* path : {"a~b",
                           "cost$5",
                           "./~/run",
                           "a/~b",
                           "$5/run",
                           "us$",
                           "us$A",
                           "$Recycle.Bin",
                           "a$b",
                           "$/x",
                           "10:30/run",
                           "a:b",
                           "x/y://z",
                           "x/y:/z",
                           "://x",
                           "'90s",
                           "a b",
                           "100%h",
                           "a{b}",
                           "C:/run",
                           "run$",
                           "",
                           "r\xc3\xa9sum\xc3\xa9"}) {
    for (const char* flag : {"--cluster=", "--ensemble=a,"}) {
      const CommandLine line = Parse({absl::StrCat(flag, path)});
      EXPECT_FALSE(line.exit_code.has_value()) << line.error;
    }
  }
}

TEST_F(CommandLineTest, AFlagThatIsNoPath_IsNotRefused) {
  EXPECT_FALSE(Parse({"--set=a=~/run"}).exit_code.has_value());
}

TEST_F(CommandLineTest, CollectsRepeatedFlagsInTheirOrder) {
  const CommandLine line =
      Parse({"--set", "a=b", "--task_index=1", "--set=c=d"});
  EXPECT_FALSE(line.exit_code.has_value()) << line.error;
  EXPECT_THAT(line.repeated.at("set"), ElementsAre("a=b", "c=d"));
}

TEST_F(CommandLineTest, HelpPrintsOwnFlagsByGroupAndExitsWith0) {
  const CommandLine line = Parse({"--task_index=3", "--help", "--nonsense"});
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_THAT(line.error, IsEmpty());
  EXPECT_THAT(
      line.out,
      AllOf(HasSubstr("Trains. Example"), HasSubstr("\nCluster:\n"),
            HasSubstr("--task_index (a whole number, default 0)"),
            HasSubstr("      JSON or text.\n"), HasSubstr("\nOther flags:\n"),
            HasSubstr("--max_wait (a duration like 10s or 5m, "
                      "default 5m)")));
  // Other libraries' flags, and other verbs', are not the user's.
  EXPECT_THAT(line.out, Not(HasSubstr("undefok")));
  EXPECT_THAT(line.out, Not(HasSubstr("--list")));
}

TEST_F(CommandLineTest, AFlagOfNoGroup_IsUnknown) {
  const CommandLine line = Parse({"--list"});
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_THAT(line.error, HasSubstr("unknown flag --list"));
  EXPECT_FALSE(absl::GetFlag(FLAGS_list));
}

TEST_F(CommandLineTest, VersionExitsWith0) {
  const CommandLine line = Parse({"--version"});
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_EQ(line.out, "muster 1.2.3\n");
}

TEST_F(CommandLineTest, AMistakeExitsWith2AndSaysWhatIsWanted) {
  struct Case {
    std::vector<std::string> args;
    const char* wanted;
  };
  const Case kCases[] = {
      {{"--task_idnex=1"},
       "worker: unknown flag --task_idnex; did you mean --task_index?"},
      {{"--zzzzzzzzzz"}, "unknown flag --zzzzzzzzzz; --help lists the flags"},
      {{"--task_index=one"},
       "--task_index must be a whole number, found 'one'"},
      {{"--task_index=1.5"}, "--task_index must be a whole number"},
      {{"--task_index="}, "--task_index must be a whole number, found ''"},
      {{"--task_index"}, "--task_index needs a value: a whole number"},
      {{"--max_wait=10x"},
       "--max_wait must be a duration like 10s or 5m, more than 0, found "
       "'10x'"},
      {{"--max_wait="}, "--max_wait must be a duration like 10s or 5m"},
      {{"--max_wait=0"}, "--max_wait must be a duration like 10s or 5m"},
      {{"--max_wait=-1s"}, "more than 0, found '-1s'"},
      {{"--max_wait=nan"}, "more than 0, found 'nan'"},
      {{"--progress_every=nan"},
       "--progress_every must be a duration like 10s or 5m, 0 or more"},
      {{"--progress_every=-1"}, "0 or more, found '-1'"},
      {{"--standalone=maybe"}, "--standalone must be true or false"},
      {{"--nocluster"}, "unknown flag --nocluster; did you mean --cluster?"},
      {{"--set"}, "--set needs a value"},
      {{"train"}, "unexpected argument 'train'"},
      {{"--standalone", "true"}, "unexpected argument 'true'"},
      {{"-"}, "unexpected argument '-'"},
      {{"--"}, "unknown flag --"},
      {{""}, "unexpected argument ''"},
      {{"--x\x1b[2J"}, "unknown flag --x\\x1b[2J"},
      {{"--flagfile"}, "--flagfile needs a value"},
      {{"--flagfile=/nowhere/f"}, "--flagfile: reading /nowhere/f"},
  };
  for (const Case& c : kCases) {
    const CommandLine line = Parse(c.args);
    EXPECT_EQ(line.exit_code, 2);
    EXPECT_THAT(line.error, HasSubstr(c.wanted));
    EXPECT_THAT(line.out, IsEmpty());
  }
}

TEST_F(CommandLineTest, ReadsAFlagfileWhereItStands) {
  const std::string path =
      WriteFlagfile("# comment\n\n--task_index=4\n  --set=a=b\n--standalone\n");
  const CommandLine line =
      Parse({"--task_index=1", "--flagfile", path, "--set=c=d"});
  EXPECT_FALSE(line.exit_code.has_value()) << line.error;
  EXPECT_EQ(absl::GetFlag(FLAGS_task_index), 4);
  EXPECT_THAT(line.repeated.at("set"), ElementsAre("a=b", "c=d"));
}

TEST_F(CommandLineTest, NamesTheFlagfileOfAMistake) {
  const std::string path = WriteFlagfile("--task_idnex=4\n");
  EXPECT_THAT(Parse({"--flagfile=" + path}).error,
              AllOf(HasSubstr(path), HasSubstr("did you mean")));
  std::ofstream(path) << "--flagfile=" << path << "\n";
  EXPECT_THAT(Parse({"--flagfile=" + path}).error,
              HasSubstr("does it name itself?"));
}

}  // namespace
}  // namespace muster
