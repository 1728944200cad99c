// The ps_server binary itself: exit codes, signals, what it links.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kBinary[] = "ps_server/ps_server";

// Runs a shell command; returns its exit code and everything it printed.
struct Outcome {
  int exit_code = -1;
  std::string text;
};

Outcome Shell(const std::string& command) {
  Outcome outcome;
  FILE* const pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.text.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

// A ps_server that listens on a free port; its stderr is read line by line.
class Process {
 public:
  explicit Process(const std::vector<std::string>& flags) {
    std::array<int, 2> ends;
    if (pipe(ends.data()) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      std::vector<char*> argv = {const_cast<char*>(kBinary)};
      for (const std::string& flag : flags) {
        argv.push_back(const_cast<char*>(flag.c_str()));
      }
      argv.push_back(nullptr);
      execv(kBinary, argv.data());
      _exit(127);
    }
    close(ends[1]);
    errors_ = fdopen(ends[0], "r");
  }
  ~Process() {
    if (errors_ != nullptr) fclose(errors_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // Reads until a line contains `text`; false at the end.
  bool WaitForLine(const std::string& text) {
    std::array<char, 4096> line;
    while (fgets(line.data(), line.size(), errors_) != nullptr) {
      all_ += line.data();
      if (absl::StrContains(line.data(), text)) return true;
    }
    return false;
  }

  void Signal(int signal) { kill(pid_, signal); }

  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const std::string& all() const { return all_; }

 private:
  pid_t pid_ = 0;
  FILE* errors_ = nullptr;
  std::string all_;
};

const std::vector<std::string>& LocalFlags() {
  static const auto& flags = *new std::vector<std::string>{
      "--ps_hosts=localhost:2222", "--worker_hosts=localhost:2223",
      "--bind=127.0.0.1:0"};
  return flags;
}

TEST(PsServerTest, HelpAndVersionExitWithZero) {
  const Outcome version = Shell(absl::StrCat(kBinary, " --version"));
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.text, HasSubstr("muster"));
  EXPECT_EQ(Shell(absl::StrCat(kBinary, " --help")).exit_code, 0);
}

TEST(PsServerTest, MistakesExitWithTwoAndAreNamed) {
  const Outcome flag = Shell(absl::StrCat(kBinary, " --clustr=x"));
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.text, HasSubstr("--cluster"));
  const Outcome index =
      Shell(absl::StrCat(kBinary, " --ps_hosts=localhost:1 --task_index=3"));
  EXPECT_EQ(index.exit_code, 2);
  EXPECT_THAT(index.text, HasSubstr("3"));
  const Outcome nothing = Shell(kBinary);
  EXPECT_EQ(nothing.exit_code, 2);
}

TEST(PsServerTest, ANetworkThatWasNotAllowedExitsWithFour) {
  const Outcome outcome = Shell(
      absl::StrCat(kBinary, " --ps_hosts=localhost:2222 --bind=0.0.0.0:0"));
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.text, HasSubstr("--allow_insecure_network"));
}

TEST(PsServerTest, AnAddressOfAnotherMachineExitsWithTwo) {
  // TEST-NET-1 belongs to nobody.
  const Outcome outcome = Shell(absl::StrCat(kBinary,
                                             " --ps_hosts=192.0.2.1:2222 "
                                             "--allow_insecure_network"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("192.0.2.1:2222"));
}

TEST(PsServerTest, SignalsDrainAndSayWhatWasDone) {
  for (const auto& [signal, exit_code] :
       {std::pair(SIGTERM, 143), std::pair(SIGINT, 130)}) {
    Process process(LocalFlags());
    ASSERT_TRUE(process.WaitForLine("listening on"));
    process.Signal(signal);
    EXPECT_TRUE(process.WaitForLine("ended: steps=0")) << process.all();
    EXPECT_EQ(process.Wait(), exit_code);
  }
}

TEST(PsServerTest, LinksNoCudaAndNoOneDnn) {
  const Outcome ldd = Shell(absl::StrCat("ldd ", kBinary));
  ASSERT_EQ(ldd.exit_code, 0) << ldd.text;
  EXPECT_THAT(ldd.text, HasSubstr("libgrpc++"));
  for (const char* const library :
       {"libcuda", "libcudart", "libcudnn", "libcublas", "libdnnl"}) {
    EXPECT_THAT(ldd.text, Not(HasSubstr(library)));
  }
}

}  // namespace
}  // namespace muster
