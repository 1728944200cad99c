#include "worker/training/training_changes.h"

#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::TextFormat;

constexpr size_t kMostLines = 50;
constexpr size_t kMostValueChars = 100;

// The fields that are set, by the paths that --set has for them.
class FlatFields {
 public:
  explicit FlatFields(const TrainingSpec& spec) {
    TrainingSpec semantic = SemanticPart(spec);
    semantic.clear_placement();
    Add(semantic, "");
  }

  // "not set" for what is not there.
  std::string ValueOf(const std::string& path) const {
    const auto found = values_.find(path);
    return found == values_.end() ? "not set" : found->second;
  }
  const std::vector<std::string>& paths() const { return paths_; }
  bool Has(const std::string& path) const { return values_.count(path) > 0; }

 private:
  static std::string Join(const std::string& path, const std::string& name) {
    return path.empty() ? name : absl::StrCat(path, ".", name);
  }

  void Put(const std::string& path, const std::string& value) {
    if (values_.emplace(path, value).second) paths_.push_back(path);
  }

  void Add(const Message& message, const std::string& path) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    // A choice that has no settings.
    if (fields.empty() && !path.empty()) Put(path, "{}");
    for (const FieldDescriptor* field : fields) {
      if (field->is_repeated()) {
        AddList(message, field, path);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Add(message.GetReflection()->GetMessage(message, field),
            Join(path, field->name()));
      } else {
        Put(Join(path, field->name()), ValueText(message, field, -1));
      }
    }
  }

  void AddList(const Message& message, const FieldDescriptor* field,
               const std::string& path) {
    const int size = message.GetReflection()->FieldSize(message, field);
    std::vector<std::string> items;
    for (int i = 0; i < size; ++i) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        items.push_back(ValueText(message, field, i));
        continue;
      }
      const Message& item =
          message.GetReflection()->GetRepeatedMessage(message, field, i);
      if (field->message_type() == Attr::descriptor()) {
        AddAttr(static_cast<const Attr&>(item), AttrPath(message, path));
      } else if (field->message_type() == LayerSpec::descriptor()) {
        const auto& layer = static_cast<const LayerSpec&>(item);
        Add(layer, Join(path, layer.name()));
        items.push_back(layer.name());
      } else {
        Add(item, absl::StrCat(Join(path, field->name()), "[", i, "]"));
      }
    }
    // Of layers: their order.
    if (!items.empty()) {
      Put(Join(path, field->name()), absl::StrJoin(items, ", "));
    }
  }

  // An optimizer's attributes are those of its name.
  static std::string AttrPath(const Message& message, const std::string& path) {
    if (message.GetDescriptor() != OptimizerSpec::descriptor()) return path;
    return Join(path, static_cast<const OptimizerSpec&>(message).name());
  }

  void AddAttr(const Attr& attr, const std::string& path) {
    const FieldDescriptor* value =
        attr.GetReflection()->GetOneofFieldDescriptor(
            attr, Attr::descriptor()->FindOneofByName("value"));
    if (value == nullptr) return;
    Put(Join(path, attr.name()), ValueText(attr, value, -1));
  }

  static std::string ValueText(const Message& message,
                               const FieldDescriptor* field, int index) {
    std::string text;
    TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.PrintFieldValueToString(message, field, index, &text);
    return text;
  }

  std::map<std::string, std::string> values_;
  // In the order of the training.
  std::vector<std::string> paths_;
};

}  // namespace

std::vector<std::string> DescribeTrainingChanges(const TrainingSpec& before,
                                                 const TrainingSpec& now) {
  const FlatFields old_fields(before);
  const FlatFields new_fields(now);
  std::vector<std::string> paths = old_fields.paths();
  for (const std::string& path : new_fields.paths()) {
    if (!old_fields.Has(path)) paths.push_back(path);
  }
  std::vector<std::string> lines;
  size_t more = 0;
  for (const std::string& path : paths) {
    const std::string from = old_fields.ValueOf(path);
    const std::string to = new_fields.ValueOf(path);
    if (from == to) continue;
    if (lines.size() == kMostLines) {
      ++more;
      continue;
    }
    lines.push_back(absl::StrCat(EscapeForLog(path, kMostValueChars), ": ",
                                 EscapeForLog(from, kMostValueChars), " -> ",
                                 EscapeForLog(to, kMostValueChars)));
  }
  if (more > 0) lines.push_back(absl::StrCat("and ", more, " more"));
  return lines;
}

}  // namespace muster
