#ifndef TESTS_SIMULATION_SIM_FILE_SYSTEM_H_
#define TESTS_SIMULATION_SIM_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/file_system.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/random.h"
#include "tests/simulation/sim_process.h"

namespace muster {

// A machine's disk and the lock on its train_dir.
struct SimDisk {
  FakeFileSystem files{"train"};
  // The incarnation that holds the lock; 0: nobody.
  uint64_t lock_holder = 0;
  // Nothing can be written until then.
  absl::Time full_until = absl::InfinitePast();
};

// The disk as one process sees it: each call takes virtual time, in which
// others run and this process may die. A dead process changes nothing more.
class SimFileSystem : public FileSystem {
 public:
  struct Options {
    const SimProcess* process = nullptr;
    SimDisk* disk = nullptr;
    Oracle* oracle = nullptr;
    uint64_t incarnation = 0;
    // The time of one call.
    absl::Duration mean;
    Bug bug = Bug::kNone;
  };

  explicit SimFileSystem(const Options& options)
      : options_(options), random_(options.incarnation) {}

  void Die() { dead_ = true; }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(
      const std::string& path) override;
  absl::Status CreateFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;

 private:
  class Writable;

  // Lets time pass before a call. Errors: Internal if this process is dead.
  absl::Status Pause(const char* call);
  // The same for a call that changes something.
  absl::Status PauseToWrite(const char* call);
  // And one that needs room on the disk. Errors: also ResourceExhausted.
  absl::Status PauseToGrow(const char* call);
  absl::Status CheckAlive(const char* call) const;
  absl::Status CheckWrite(const char* call) const;
  absl::Status CheckRoom(const char* call) const;

  const Options options_;
  Random random_;
  bool dead_ = false;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_FILE_SYSTEM_H_
