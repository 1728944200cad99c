#include "worker/hook/summary_writer.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// "" if the system does not say.
std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace

std::unique_ptr<EventFileWriter> MakeSummaryWriter(FileSystem* file_system,
                                                   const Clock* clock,
                                                   const std::string& train_dir,
                                                   absl::string_view writer,
                                                   Reporter reporter) {
  EventFileWriter::Options options;
  options.file.file_system = file_system;
  options.file.folder = absl::StrCat(train_dir, "/summaries/", writer);
  options.file.host = HostName();
  options.file.process_id = getpid();
  options.clock = clock;
  options.reporter = std::move(reporter);
  return std::make_unique<EventFileWriter>(std::move(options));
}

}  // namespace muster
