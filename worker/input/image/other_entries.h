#ifndef WORKER_INPUT_IMAGE_OTHER_ENTRIES_H_
#define WORKER_INPUT_IMAGE_OTHER_ENTRIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// The entries of folders that are passed over, counted by kind, however many
// there are and whatever they are called.
class OtherEntries {
 public:
  // `kind`: ".gif", "dangling link". The first few are named by their paths.
  void Add(const std::string& path, absl::string_view kind);

  int64_t count() const { return count_; }
  // "4 entries that are not read (2 .gif, 2 FIFO): 'a.gif', 'b.gif', 'c' and 1
  // more"
  std::string ToString() const;

 private:
  int64_t count_ = 0;
  std::map<std::string, int64_t> kinds_;
  std::vector<std::string> first_;
};

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_OTHER_ENTRIES_H_
