// Settings of libFuzzer for a run as a test of Bazel's.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

// In front of all others. `outputs` and `temporary` are folders, and so is
// `kept`, which has the kept inputs.
std::vector<std::string> Settings(const std::string& outputs,
                                  const std::string& temporary,
                                  const std::string& kept) {
  // libFuzzer adds what it finds to the first folder; the kept one stays.
  const std::string found = temporary + "/found";
  std::filesystem::create_directories(found);
  std::printf(
      "fuzz: an input that fails is written to %s/,\n"
      "and shown in base64 if it is small. Mend the fault, and keep the input "
      "in %s.\n",
      outputs.c_str(), kept.c_str());
  std::fflush(stdout);
  return {"-timeout=30", "-rss_limit_mb=1536", "-print_final_stats=1",
          "-print_funcs=0",
          // Half of the time, with as many branches as there are at -O0.
          "-entropic=0", "-artifact_prefix=" + outputs + "/", found};
}

}  // namespace

// libFuzzer calls it first. Later flags win over these: those of the BUILD
// file, and Bazel's --test_arg.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const char* const outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const char* const temporary = std::getenv("TEST_TMPDIR");
  if (outputs == nullptr || temporary == nullptr) return 0;
  std::string kept;
  for (int i = 1; i < *argc; ++i) {
    if ((*argv)[i][0] != '-') kept = (*argv)[i];
  }
  // Never freed: libFuzzer keeps pointers to them.
  static auto& settings =
      *new std::vector<std::string>(Settings(outputs, temporary, kept));
  static auto& all = *new std::vector<char*>;
  all.push_back((*argv)[0]);
  for (std::string& setting : settings) all.push_back(setting.data());
  all.insert(all.end(), *argv + 1, *argv + *argc);
  *argc = static_cast<int>(all.size());
  all.push_back(nullptr);
  *argv = all.data();
  return 0;
}
