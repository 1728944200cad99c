#ifndef TESTS_COMMON_SHARED_MEMORY_OPEN_DESCRIPTORS_H_
#define TESTS_COMMON_SHARED_MEMORY_OPEN_DESCRIPTORS_H_

#include <dirent.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

namespace muster {

// How many file descriptors this process has open.
inline int OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// How many pieces of shared memory this process has mapped.
inline int MappedSegments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:muster") != std::string::npos) ++count;
  }
  return count;
}

// While it lives, this process cannot open another file descriptor.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    // Those of stdin, stdout and stderr; poll() wants some.
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace muster

#endif  // TESTS_COMMON_SHARED_MEMORY_OPEN_DESCRIPTORS_H_
