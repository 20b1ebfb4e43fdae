// SPDX-License-Identifier: Apache-2.0
#include "impl/external/omission.h"

#include <algorithm>

#include "impl/external/config.h"

namespace lossgate::impl {
namespace {

/// Whether nobody has the one and lacks the other.
bool go_together(const Field& field, const Field& other) {
  return field.role == other.role && field.quantity == other.quantity &&
         field.stand_in == other.stand_in;
}

/// Before the device, which a subject that is asked on several is compared by.
std::string name_without(const Subject& subject, const std::vector<std::string>& fields) {
  std::string name = subject.name, what = "-without";
  const std::string device = on_device("", subject.device);
  for (const std::string& field : fields) what += "-" + field;
  return name.insert(name.size() - (name.ends_with(device) ? device.size() : 0), what);
}

void leave_at_its_default(const std::string& parameter, Subject& subject) {
  std::erase_if(subject.arguments, [&](const auto& pair) { return pair.first == parameter; });
  subject.arguments.emplace_back(parameter, "default");
}

}  // namespace

std::vector<Omission> omissions(const Subject& subject, const LossSignature& loss) {
  std::vector<Omission> found;
  if (!subject.entry.starts_with("py:") || !subject.omitted_fields) return found;
  std::vector<std::vector<const Field*>> groups;
  for (const Field& field : loss.fields) {
    if (!field.optional) continue;
    const auto group = std::ranges::find_if(
        groups, [&](const auto& fields) { return go_together(*fields.front(), field); });
    if (group == groups.end()) {
      groups.push_back({&field});
    } else {
      group->push_back(&field);
    }
  }
  for (const auto& group : groups) {
    Omission& omission = found.emplace_back();
    for (const Field* field : group) omission.fields.push_back(field->name);
    omission.name = name_without(subject, omission.fields);
  }
  return found;
}

std::optional<Subject> omitting(const Omission& omission, Subject subject,
                                const Greeting& greeting) {
  bool any = false;
  for (const auto& [parameter, source] : greeting.arguments) {
    const std::string base = source.substr(0, source.find(" as "));
    const bool left = std::ranges::any_of(
        omission.fields, [&](const std::string& field) { return base == "field:" + field; });
    if (!left) continue;
    if (std::ranges::count(greeting.omissible, parameter) == 0) return std::nullopt;
    leave_at_its_default(parameter, subject);
    any = true;
  }
  if (!any) return std::nullopt;
  subject.name = omission.name;
  subject.omitted = omission.fields;
  return subject;
}

}  // namespace lossgate::impl
