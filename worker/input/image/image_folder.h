#ifndef WORKER_INPUT_IMAGE_IMAGE_FOLDER_H_
#define WORKER_INPUT_IMAGE_IMAGE_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/work_progress.h"
#include "worker/input/image/other_entries.h"

namespace muster {

// One file of an image folder.
struct ImageFile {
  std::string path;
  // Its place among the classes.
  int class_index = 0;
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
