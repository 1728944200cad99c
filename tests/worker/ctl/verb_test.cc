#include "worker/ctl/verb.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Prints its flag and its arguments; fails where they say so.
absl::Status Echo(const VerbCall& call, VerbResult* result) {
  result->out = call.Flag("mark");
  for (const std::string& mark : call.Repeated("mark")) result->out += mark;
  for (const std::string& text : call.arguments) result->out += text;
  if (result->out == "lost") return absl::DataLossError("it is lost");
  if (result->out == "bad") return absl::NotFoundError("it is bad");
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "text echo", {"TEXT",
                  "repeats a text.\n  As it is.",
                  {{"mark", "Before it."}, {"loud", "So.", true}},
                  1,
                  2,
                  &Echo});

[[maybe_unused]] const bool kPathRegistered = VerbRegistry::Register(
    "text path",
    {"PATH",
     "repeats a path.",
     {{"certs_dir", "Keys."}, {"force", "All.", /*is_switch=*/true}},
     1,
     1,
     &Echo});

VerbResult Ctl(const std::vector<std::string>& args) {
  return RunVerb(args, nullptr);
}

void ExpectRefused(const std::vector<std::string>& args,
                   const std::string& says) {
  const VerbResult result = Ctl(args);
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.error, AllOf(StartsWith("musterctl"), HasSubstr(says)));
}

TEST(VerbTest, GetsItsArgumentsAndFlagsInAnyOrder) {
  EXPECT_EQ(Ctl({"text", "echo", "a", "b"}).out, "ab");
  EXPECT_EQ(Ctl({"text", "echo", "--mark=x=y", "a"}).out, "x=yx=ya");
  EXPECT_EQ(Ctl({"text", "echo", "a", "-mark", "x", "--mark", "y"}).out,
            "yxya");
}

TEST(VerbTest, HelpNamesEveryVerbAndOneVerbsFlags) {
  for (const auto& args : {std::vector<std::string>{"--help"},
                           std::vector<std::string>{"text", "--help"}}) {
    const VerbResult result = Ctl(args);
    EXPECT_EQ(result.exit_code, kExitDone);
    EXPECT_THAT(
        result.out,
        AllOf(HasSubstr("musterctl text echo TEXT [FLAGS]\n"),
              HasSubstr("repeats a text.\n"), Not(HasSubstr("--mark"))));
  }
  EXPECT_THAT(Ctl({"text", "echo", "--help"}).out,
              AllOf(HasSubstr("As it is."), HasSubstr("--mark=VALUE\n")));
  EXPECT_THAT(Ctl({"--version"}).out, StartsWith("muster "));
}

TEST(VerbTest, MistakesAreSentencesThatSayWhatToDo) {
  ExpectRefused({}, "wanted a verb first; musterctl --help lists the verbs");
  ExpectRefused({"text", "ecco"}, "did you mean 'text echo'?");
  ExpectRefused({"text"}, "known: text echo");
  ExpectRefused({"text", "echo"},
                "wanted TEXT, found 0 argument(s); musterctl "
                "text echo --help says more");
  ExpectRefused({"text", "echo", "a", "b", "c"}, "unexpected argument 'c'");
  ExpectRefused({"text", "echo", "--marc=x"}, "did you mean --mark?");
  ExpectRefused({"text", "echo", "--mark"}, "--mark needs a value");
  ExpectRefused({"text", "path", "--force=banana", "a"},
                "--force must be true or false, found 'banana'");
  EXPECT_EQ(Ctl({"text", "path", "--force=false", "a"}).out, "a");
}

TEST(VerbTest, APathThatMeansSomethingElse_IsRefused) {
  ExpectRefused({"text", "path", "~/run"}, "PATH=~/run");
  ExpectRefused({"text", "path", "run", "--certs_dir=$HOME/certs"},
                "--certs_dir=$HOME/certs");
  EXPECT_EQ(Ctl({"text", "path", "cost$5"}).out, "cost$5");
  EXPECT_EQ(Ctl({"text", "echo", "~/run"}).out, "~/run") << "is no path";
}

TEST(VerbTest, OnlyADamagedCheckpointEndsWith3) {
  const VerbResult lost = Ctl({"text", "echo", "lost"});
  EXPECT_EQ(lost.exit_code, kExitBadCheckpoint);
  EXPECT_EQ(lost.error, "musterctl text echo: it is lost\n");
  EXPECT_EQ(Ctl({"text", "echo", "bad"}).exit_code, kExitBadConfig);
}

}  // namespace
}  // namespace muster
