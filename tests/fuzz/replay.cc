// The main of a fuzz target without libFuzzer: tries each file of the folders
// that it is given. libFuzzer's flags, which begin with '-', mean nothing here.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      paths.push_back(file.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    // The last line of a run that ends here tells which input it was.
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    // As large as the input, so that reading beyond it is noticed.
    const std::vector<char> input{std::istreambuf_iterator<char>(file), {}};
    muster::TryInput({input.data(), input.size()});
  }
  std::printf("%zu inputs\n", paths.size());
  return paths.empty() ? 1 : 0;
}
