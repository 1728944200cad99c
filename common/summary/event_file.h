#ifndef COMMON_SUMMARY_EVENT_FILE_H_
#define COMMON_SUMMARY_EVENT_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/checkpoint/file_system.h"
#include "proto/summary.pb.h"

namespace muster {

// The files of one writer's folder, to which whole records are appended. A
// file is made at the first Append, and where one is full; after an error the
// next Append makes another, because the old one may end in a torn record,
// behind which nothing is read. TensorBoard reads the files of a folder in the
// order of their names, which begin with the time. One thread.
class EventFile {
 public:
  struct Options {
    // Outlives this.
    FileSystem* file_system = nullptr;
    // Made if it is not there; its parent too.
    std::string folder;
    // For the file's name.
    std::string host;
    int64_t process_id = 0;
    // The time of day.
    std::function<absl::Time()> wall_now = absl::Now;
    // An Append that would make a file longer goes into the next one, so that
    // old points can be removed, or copied, apart from new ones.
    int64_t max_bytes = int64_t{64} << 20;
  };

  explicit EventFile(Options options);

  // Appends whole records, of which the first is of `first_step`. After an
  // error some may be on the disk: append all of them again (the next file
  // tells TensorBoard to forget what it has of that step and above).
  absl::Status Append(absl::string_view records, int64_t first_step);

  // The newest file's; "" before the first.
  const std::string& path() const { return path_; }

 private:
  absl::Status Open();
  absl::Status CreateFolders();
  absl::StatusOr<int64_t> NewestSecond() const;

  const Options options_;
  std::unique_ptr<WritableFile> file_;
  std::string path_;
  // Written into file_.
  int64_t bytes_ = 0;
  // Files made so far.
  int64_t count_ = 0;
  // The last Append failed: its records may be in the file before.
  bool torn_ = false;
};

// `event` as a record.
std::string EventRecord(const Event& event);

}  // namespace muster

#endif  // COMMON_SUMMARY_EVENT_FILE_H_
