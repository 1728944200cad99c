#ifndef COMMON_CONFIG_ATTRIBUTES_H_
#define COMMON_CONFIG_ATTRIBUTES_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"

namespace muster {

enum class AttrType { kInt, kFloat, kString, kBool, kInts };

// "int", "float", "string", "bool" or "list of ints".
absl::string_view AttrTypeName(AttrType type);

// In the order of AttrType.
using AttrValue =
    std::variant<int64_t, double, std::string, bool, std::vector<int64_t>>;

// One setting that a layer or an update rule knows. Without a default it is
// required. A table of them is the whole interface of a rule to its text form:
//
//   static const auto& kAttrs = *new std::vector<AttrDef>{
//       IntAttr("filters", "output channels").AtLeast(1),
//       StringAttr("padding", "of the borders")
//           .OneOf({"same", "valid"})
//           .Default("same"),
//       FloatAttr("learning_rate", "step size").MoreThan(0)};
struct AttrDef {
  std::string name;
  AttrType type;
  std::string help;
  std::optional<AttrValue> default_value;
  // The limits of an int or a float, and of each element of a list of ints.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  // The limit itself is not allowed.
  bool min_is_open = false;
  bool max_is_open = false;
  // A string must be one of these; any string if empty.
  std::vector<std::string> allowed;

  // Each returns a changed copy. REQUIRES: the value is of `type`, except that
  // an int is taken for a float.
  AttrDef Default(AttrValue value) const;
  AttrDef AtLeast(double limit) const;
  AttrDef AtMost(double limit) const;
  AttrDef MoreThan(double limit) const;
  AttrDef LessThan(double limit) const;
  AttrDef OneOf(std::vector<std::string> names) const;
};

// A required setting without limits.
AttrDef IntAttr(absl::string_view name, absl::string_view help);
AttrDef FloatAttr(absl::string_view name, absl::string_view help);
AttrDef StringAttr(absl::string_view name, absl::string_view help);
AttrDef BoolAttr(absl::string_view name, absl::string_view help);
AttrDef IntsAttr(absl::string_view name, absl::string_view help);

// The settings of one layer or update rule: checked against its table, with
// the defaults filled in. A value type; const methods are thread-safe.
class Attributes {
 public:
  // Checks `attrs`. A float may be written as an int, and a list of one int as
  // an int. Errors, all InvalidArgument and naming the attribute: not in the
  // table (with the nearest name), given twice, without a value, of another
  // type, out of range or not finite, required and missing.
  static absl::StatusOr<Attributes> Create(
      absl::Span<const AttrDef> table,
      const google::protobuf::RepeatedPtrField<Attr>& attrs);

  // REQUIRES: the table has `name` with this type.
  int64_t Int(absl::string_view name) const;
  double Float(absl::string_view name) const;
  const std::string& String(absl::string_view name) const;
  bool Bool(absl::string_view name) const;
  absl::Span<const int64_t> Ints(absl::string_view name) const;

 private:
  Attributes() = default;

  const AttrValue& Value(absl::string_view name) const;

  std::map<std::string, AttrValue, std::less<>> values_;
};

// Makes an Attr of the definition's type from text ("16", "3e-4", "same",
// "true", "2,2" or "[2, 2]"). The limits are checked by Attributes::Create.
// Errors: InvalidArgument naming the attribute, the type and the text.
absl::StatusOr<Attr> ParseAttr(const AttrDef& def, absl::string_view text);

// The definition of `name`, or InvalidArgument with the nearest name.
absl::StatusOr<AttrDef> FindAttr(absl::Span<const AttrDef> table,
                                 absl::string_view name);

// One line an attribute, for `musterctl list`:
//   "filters: int, required, >= 1: output channels\n"
std::string DescribeAttributes(absl::Span<const AttrDef> table);

}  // namespace muster

#endif  // COMMON_CONFIG_ATTRIBUTES_H_
