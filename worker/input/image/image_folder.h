#ifndef WORKER_INPUT_IMAGE_IMAGE_FOLDER_H_
#define WORKER_INPUT_IMAGE_IMAGE_FOLDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/work_progress.h"

namespace muster {

// One file of an image folder.
struct ImageFile {
  std::string path;
  // Its place among the classes.
  int class_index = 0;
};

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

// A data set of images whose classes are the folders that they lie in.
struct ImageFolder {
  // Names of the sub-folders, sorted by bytes. Two folders may have other
  // classes: compare names, not indices.
  std::vector<std::string> classes;
  // Sorted by class, then by folder, then by name, in bytes: the order of
  // torchvision and Keras, the same for every worker.
  std::vector<ImageFile> files;
  // The entries that are no images to be read: files of other kinds, hidden
  // ones, links to nothing, FIFOs, files beside the classes, links in a loop.
  OtherEntries others;
};

// Lists `dir`: files at any depth of its sub-folders whose names end in .jpg,
// .jpeg or .png, in any case. Links are followed, but for those to a folder
// that they lie in. No file is opened. A hidden sub-folder (.git) is no class.
// Errors, each with the folder: NotFound; Unavailable (cannot be read);
// InvalidArgument (no folder, no classes, a class without images, more than a
// million folders). `progress`, if there is one, counts entries as rows.
absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& dir,
                                            WorkProgress* progress = nullptr);

// The images of `dir` itself, sorted by name, or, if there are none, those of
// ScanImageFolder. Errors: ScanImageFolder's.
absl::StatusOr<ImageFolder> ListImages(const std::string& dir,
                                       WorkProgress* progress = nullptr);

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_IMAGE_FOLDER_H_
