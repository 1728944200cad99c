#ifndef PS_SERVER_COORDINATOR_AGREED_DATA_H_
#define PS_SERVER_COORDINATOR_AGREED_DATA_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/members.h"

namespace muster {

// The data that all workers of a job have alike, section by section: those of
// the first worker that sends a section stand until the chief's, which replace
// them. A section that one of two tasks does not send is not compared: a
// program sends the number of workers alone. Not thread-safe.
class AgreedData {
 public:
  static constexpr int kMaxSections = 16;
  // The bytes of all sections of a request together.
  static constexpr size_t kMaxBytes = 128 << 10;

  // Errors: InvalidArgument if the data are too large; with the section, the
  // first difference and both sides, if they differ in more than their files
  // and may not replace those that stand. The chief's always may, a worker's
  // while the chief has not come and nobody else is there.
  absl::Status Check(const RegisterRequest& request, bool is_chief,
                     const Members& members) const;
  // The same of the number of workers alone, with which a training differs,
  // too: it is asked for first.
  absl::Status CheckWorkers(const RegisterRequest& request, bool is_chief,
                            const Members& members) const;

  // Whether a chief's data are what the model that the ps tasks hold was
  // trained with, but for rows, workers and files. Errors: InvalidArgument, as
  // Check.
  absl::Status CheckModel(const RegisterRequest& request, bool is_chief) const;

  // Makes the data the job's if they are the chief's, or the first, or differ.
  // Returns whether they replace others that differ. REQUIRES: Check was OK.
  bool Adopt(const RegisterRequest& request, bool is_chief);

  // The ps tasks hold a model that is trained with the data that stand.
  void KeepForModel();

  // The job is over: the next one's data may be others, but for those of the
  // model.
  void Clear();

  // The news for the operator since the last call: tasks that are not compared.
  std::vector<std::string> TakeLines();
  // The same, of what may be a mistake: other files with the same rows.
  std::vector<std::string> TakeWarnings();

 private:
  // A section, and who brought it.
  struct Known {
    DataSection section;
    TaskKey owner;
  };

  // OK for null, and for who may replace the data that stand.
  absl::Status Refuse(const DataSection* different,
                      const RegisterRequest& request, bool is_chief,
                      const Members& members) const;
  // Where a request's data and those that stand differ.
  std::string DifferenceIn(const DataSection& given) const;
  // The first section of the request that differs; null for none.
  const DataSection* FindDifferent(const RegisterRequest& request) const;
  // Null if it is the same, or one of both lacks it.
  const DataSection* FindDifferent(const RegisterRequest& request,
                                   absl::string_view name) const;
  bool Differs(const DataSection& given) const;
  const Known* Find(absl::string_view name) const;
  // Who brought the first section that is about data; null: nobody has yet.
  const TaskKey* FindDescriber() const;
  // Those that nobody has sent; the chief's in the place of others'.
  void Add(const RegisterRequest& request, bool is_chief);
  void NoteUncompared(const TaskKey& key);
  void SayUncompared(const TaskKey& key);
  void WarnOfFiles(const RegisterRequest& request);

  std::vector<Known> sections_;
  bool are_chiefs_ = false;
  // Columns, classes, map and label of the model.
  std::vector<DataSection> of_model_;

  // Tasks that have sent none; as few as may register.
  std::set<TaskKey> uncompared_;
  // Tasks whose other files were said.
  std::set<TaskKey> warned_;
  std::vector<std::string> lines_;
  std::vector<std::string> warnings_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_AGREED_DATA_H_
