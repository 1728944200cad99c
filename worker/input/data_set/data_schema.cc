#include "worker/input/data_set/data_schema.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "worker/input/data_set/data_files.h"

namespace muster {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;
using Stages = google::protobuf::RepeatedPtrField<MapSpec>;

constexpr size_t kShownBytes = 80;
constexpr size_t kShownStageBytes = 200;
constexpr int kShownNames = 20;
constexpr int kComparedNames = 1000;
// The format whose rows go by the names of their files.
constexpr char kNamesRows[] = "image_folder";
// Every integer below it is a double.
constexpr double kMaxExactInteger = int64_t{1} << 53;

absl::Status Refused(absl::string_view what, absl::string_view of_run,
                     absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", of_run, " in the run, is ", found,
      " now; give the model what it was trained on, or train anew"));
}

// A stage as it is meant: its attributes sorted, 4.0 as 4.
MapSpec MeantStage(MapSpec stage) {
  std::stable_sort(
      stage.mutable_attr()->begin(), stage.mutable_attr()->end(),
      [](const Attr& a, const Attr& b) { return a.name() < b.name(); });
  for (Attr& attr : *stage.mutable_attr()) {
    if (attr.value_case() == Attr::kF && std::trunc(attr.f()) == attr.f() &&
        std::fabs(attr.f()) < kMaxExactInteger) {
      attr.set_i(static_cast<int64_t>(attr.f()));
    }
  }
  return stage;
}

std::string ShownStage(const Stages& map, int i) {
  if (i >= map.size()) return "nothing";
  return absl::StrCat(
      "{ ", EscapeForLog(map[i].ShortDebugString(), kShownStageBytes), " }");
}

absl::Status CheckMap(const Stages& run, const Stages& now) {
  for (int i = 0; i < std::max(run.size(), now.size()); ++i) {
    if (i < std::min(run.size(), now.size()) &&
        MeantStage(run[i]).SerializeAsString() ==
            MeantStage(now[i]).SerializeAsString()) {
      continue;
    }
    return Refused(absl::StrCat("input.map: stage ", i + 1, " was"),
                   ShownStage(run, i), ShownStage(now, i));
  }
  return absl::OkStatus();
}

// Rows that were trained on must be of no other half.
absl::Status CheckFractions(const DataSchema& run, const DataSchema& now) {
  const auto check = [&](const char* field, double of_run, double found) {
    const auto shown = [](double fraction, const DataSchema& schema) {
      return fraction == 0
                 ? std::string("0")
                 : absl::StrCat(fraction, " (seed ", schema.split_seed(), ")");
    };
    const bool same = of_run == found && run.split_seed() == now.split_seed();
    return found == 0 || same ? absl::OkStatus()
                              : Refused(absl::StrCat(field, " was"),
                                        shown(of_run, run), shown(found, now));
  };
  RETURN_IF_ERROR(
      check("input.test_fraction", run.test_fraction(), now.test_fraction()));
  return check("input.validation_fraction", run.validation_fraction(),
               now.validation_fraction());
}

// The files of the training half, of which other halves are a part; none of a
// test half that has its own.
const DataFiles& DividedFiles(const DataSchema& schema) {
  if (schema.has_training()) return schema.training().files();
  return schema.test_fraction() > 0 && schema.has_test()
             ? schema.test().files()
             : schema.validation().files();
}

// Rows that go by their number have moved if files before others changed.
absl::Status CheckUnmoved(const DataSchema& run, const DataSchema& now) {
  const bool tests = now.test_fraction() > 0;
  if ((!tests && now.validation_fraction() == 0) ||
      run.format() == kNamesRows) {
    return absl::OkStatus();
  }
  const DataFiles& before = DividedFiles(run);
  const DataFiles& after = DividedFiles(now);
  for (int i = 0; i < std::min(before.files_size(), after.files_size()); ++i) {
    const DataFile& was = before.files(i);
    const DataFile& is = after.files(i);
    const bool may_grow = i + 1 == before.files_size();
    if (was.name() == is.name() &&
        (was.bytes() == is.bytes() || (may_grow && was.bytes() < is.bytes()))) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        tests ? "input.test_fraction" : "input.validation_fraction", ": file ",
        i + 1, " was '", ShownName(was.name()), "' with ", was.bytes(),
        " bytes in the run, is '", ShownName(is.name()), "' with ", is.bytes(),
        " now, so that rows which were trained on would be tested; let new "
        "rows come after those of the run, or train anew"));
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(const DataSchema& run, const DataSchema& now) {
  absl::flat_hash_map<absl::string_view, const DataColumn*> found;
  Names names;
  for (const DataColumn& column : now.column()) {
    found.emplace(column.name(), &column);
    *names.Add() = column.name();
  }
  for (const DataColumn& column : run.column()) {
    const auto place = found.find(column.name());
    if (place == found.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the data lack the column '", ShownName(column.name()),
                       "' of the run; ", OfferNames(column.name(), names)));
    }
    RETURN_IF_ERROR(CheckColumnChange(column, *place->second));
  }
  return absl::OkStatus();
}

absl::Status CheckClasses(const DataLabel& run, const DataLabel& now) {
  if (run.class_name().empty() != now.class_name().empty()) {
    const auto shown = [](const DataLabel& label) {
      return label.class_name().empty() ? std::string("numbers")
                                        : ShownNames(label.class_name());
    };
    return Refused("classes were", shown(run), shown(now));
  }
  if (now.class_name().empty()) {
    if (now.num_classes() <= run.num_classes() || run.num_classes() == 0) {
      return absl::OkStatus();
    }
    return Refused("the number of classes was", absl::StrCat(run.num_classes()),
                   absl::StrCat(now.num_classes()));
  }
  const absl::flat_hash_set<absl::string_view> known(run.class_name().begin(),
                                                     run.class_name().end());
  for (const std::string& name : now.class_name()) {
    if (known.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the data have the class '", ShownName(name),
        "', which the run does not know; ", OfferNames(name, run.class_name()),
        "; take it out, or train anew"));
  }
  return absl::OkStatus();
}

absl::Status CheckLabel(const DataLabel& run, const DataLabel& now) {
  if (run.weight_column() != now.weight_column()) {
    return Refused("input.weight_column was",
                   absl::StrCat("'", ShownName(run.weight_column()), "'"),
                   absl::StrCat("'", ShownName(now.weight_column()), "'"));
  }
  const auto is_none = [](const DataLabel& label) {
    return label.kind().empty() || label.kind() == kNoLabel;
  };
  if (is_none(run) || is_none(now)) return absl::OkStatus();
  if (run.kind() != now.kind()) {
    return Refused("the label was", ShownName(run.kind()),
                   ShownName(now.kind()));
  }
  if (!run.column().empty() && !now.column().empty() &&
      !absl::c_equal(run.column(), now.column())) {
    return Refused("input.label_column was", ShownNames(run.column()),
                   ShownNames(now.column()));
  }
  return run.kind() == kClassLabel ? CheckClasses(run, now) : absl::OkStatus();
}

std::string ColumnText(const DataColumn& column) {
  return absl::StrCat(
      ShownName(column.kind()),
      column.any_shape()
          ? " of any shape"
          : absl::StrCat(" [", absl::StrJoin(column.shape(), ", "), "]"));
}

void AddHalfRemark(absl::string_view name, const DataHalf& run,
                   const DataHalf& now, std::vector<std::string>* remarks) {
  DataFiles before = run.files();
  DataFiles after = now.files();
  before.set_examples(run.rows());
  after.set_examples(now.rows());
  const std::string change = DescribeChange(before, after);
  if (change.empty()) return;
  remarks->push_back(
      absl::StrCat("the ", name, " data are not those of the run: ", change));
}

}  // namespace

DataSchema CompleteSchema(const InputSpec& input, uint64_t seed,
                          DataSchema found) {
  found.set_format(input.type());
  *found.mutable_map() = input.map();
  if (found.label().weight_column() != input.weight_column()) {
    found.mutable_label()->set_weight_column(input.weight_column());
  }
  const bool tests = input.test_fraction() > 0;
  const bool validates = input.validation_fraction() > 0;
  if (tests) found.set_test_fraction(input.test_fraction());
  if (validates) found.set_validation_fraction(input.validation_fraction());
  if (tests || validates) found.set_split_seed(seed);
  return found;
}

absl::Status CheckSchemaChange(const DataSchema& run, const DataSchema& now) {
  RETURN_IF_ERROR(CheckMap(run.map(), now.map()));
  RETURN_IF_ERROR(CheckFractions(run, now));
  RETURN_IF_ERROR(CheckUnmoved(run, now));
  RETURN_IF_ERROR(CheckColumns(run, now));
  return CheckLabel(run.label(), now.label());
}

absl::Status CheckMapChange(const DataSchema& run, const DataSchema& now) {
  return CheckMap(run.map(), now.map());
}

std::vector<std::string> SchemaRemarks(const DataSchema& run,
                                       const DataSchema& now) {
  std::vector<std::string> remarks;
  if (run.format() != now.format()) {
    remarks.push_back(absl::StrCat("input.type is \"", ShownName(now.format()),
                                   "\", was \"", ShownName(run.format()),
                                   "\" in the run"));
  }
  if (run.has_training() && now.has_training()) {
    AddHalfRemark("training", run.training(), now.training(), &remarks);
  }
  if (run.has_test() && now.has_test()) {
    AddHalfRemark("test", run.test(), now.test(), &remarks);
  }
  if (run.has_validation() && now.has_validation()) {
    AddHalfRemark("validation", run.validation(), now.validation(), &remarks);
  }
  return remarks;
}

absl::Status CheckColumnChange(const DataColumn& run, const DataColumn& now) {
  const bool same_shape =
      run.any_shape() == now.any_shape() &&
      (run.any_shape() || absl::c_equal(run.shape(), now.shape()));
  if (run.kind() == now.kind() && same_shape) return absl::OkStatus();
  return Refused(absl::StrCat("column '", ShownName(run.name()), "' was"),
                 ColumnText(run), ColumnText(now));
}

std::vector<std::string> ClassNamesOf(const DataSchema& schema) {
  std::vector<std::string> names;
  for (const std::string& name : schema.label().class_name()) {
    names.push_back(BytesOfUtf8(name));
  }
  return names;
}

std::string ShownName(absl::string_view name) {
  return EscapeForLog(name, kShownBytes);
}

std::string ShownNames(const Names& names) {
  std::vector<std::string> shown;
  for (int i = 0; i < std::min(names.size(), kShownNames); ++i) {
    shown.push_back(ShownName(names[i]));
  }
  return absl::StrCat(
      names.empty() ? "none" : absl::StrJoin(shown, ", "),
      names.size() <= kShownNames
          ? ""
          : absl::StrCat(" and ", names.size() - kShownNames, " others"));
}

std::string OfferNames(absl::string_view wanted, const Names& names) {
  std::vector<std::string> compared;
  for (int i = 0; i < std::min(names.size(), kComparedNames); ++i) {
    compared.push_back(ShownName(names[i]));
  }
  const std::string nearest = NearestName(ShownName(wanted), compared);
  return absl::StrCat(
      nearest.empty() ? "" : absl::StrCat("did you mean '", nearest, "'? "),
      "there are ", ShownNames(names));
}

}  // namespace muster
