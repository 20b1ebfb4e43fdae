// SPDX-License-Identifier: Apache-2.0
#include "ci/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "ci/brought.h"
#include "ci/child.h"
#include "ci/errors.h"
#include "ci/suggestion.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

bool named(const std::vector<std::string>& filter, std::string_view name) {
  return filter.empty() || std::ranges::find(filter, name) != filter.end();
}

void check_known(std::string_view kind, const std::vector<std::string>& given,
                 const std::vector<std::string>& known) {
  for (const std::string& name : given) {
    if (std::ranges::find(known, name) == known.end()) {
      throw InputError(unknown_name(kind, name, known));
    }
  }
}

std::vector<std::string> float_dtype_names() {
  std::vector<std::string> names;
  for (const Dtype dtype : kAllDtypes) {
    if (is_float(dtype)) names.emplace_back(name(dtype));
  }
  return names;
}

/// What the files bring, by name.
struct Declared {
  std::vector<std::string> subjects, own_losses;
  std::vector<std::string> twins;  ///< that leave fields out
};

/// Two subjects of one loss and name could not be told apart in a record.
Declared declared_in(const std::vector<SubjectFile>& files) {
  std::map<std::pair<std::string, std::string>, std::string> file_of;
  Declared declared;
  for (const SubjectFile& file : files) {
    const std::vector<impl::Subject> subjects = subjects_of(file);
    for (const impl::Subject& subject : subjects) {
      const auto& [at, is_new] = file_of.emplace(std::pair(subject.loss, subject.name), file.name);
      if (!is_new) {
        throw InputError(fmt::format("{} and {} have a subject '{}' of {} each: call one otherwise",
                                     at->second, file.name, subject.name, subject.loss));
      }
      declared.subjects.push_back(subject.name);
      for (const impl::Omission& omission : omissions_in(subjects, subject)) {
        declared.twins.push_back(omission.name);
      }
      if (subject.own) declared.own_losses.push_back(subject.loss);
    }
  }
  return declared;
}

/// The subjects of the files, each the only implementation of its own loss.
void select_brought(const Filters& filters, Selection& selection) {
  for (const SubjectFile& file : filters.subjects) {
    for (auto& brought : bring(file, filters.implementations)) {
      if (!named(filters.losses, brought->loss.signature.id)) continue;
      selection.losses.push_back(&brought->loss);
      selection.implementations.push_back(&brought->implementation);
      selection.brought.push_back(std::move(brought));
    }
  }
}

/// The implementations of the catalog, and the losses that they compute.
void select_known(const Filters& filters, Selection& selection) {
  for (const reference::Loss& loss : reference::catalog()) {
    if (named(filters.losses, loss.signature.id)) selection.losses.push_back(&loss);
  }
  for (const impl::Implementation& implementation : impl::catalog()) {
    const reference::Loss* loss = reference::find_loss(implementation.loss);
    if (loss && selection.has(*loss) && named(filters.implementations, implementation.name)) {
      selection.implementations.push_back(&implementation);
    }
  }
  const auto unasked = [&](const reference::Loss* loss) {
    return std::ranges::none_of(selection.implementations, [&](const impl::Implementation* i) {
      return i->loss == loss->signature.id;
    });
  };
  std::ranges::copy_if(selection.losses, std::back_inserter(selection.unasked), unasked);
  std::erase_if(selection.losses, unasked);
}

}  // namespace

const LossSignature* Selection::find_signature(std::string_view loss) const {
  for (const auto& subject : brought) {
    if (subject->subject.own && subject->subject.loss == loss) return subject->subject.own.get();
  }
  return reference::find_signature(loss);
}

bool Selection::has(Dtype dtype) const { return std::ranges::find(dtypes, dtype) != dtypes.end(); }

bool Selection::has(const reference::Loss& loss) const {
  return std::ranges::find(losses, &loss) != losses.end();
}

const impl::Implementation* Selection::find_implementation(std::string_view loss,
                                                           std::string_view name) const {
  for (const impl::Implementation* implementation : implementations) {
    if (implementation->loss == loss && implementation->name == name) return implementation;
  }
  return nullptr;
}

double patience_with(const Selection& selection, double timeout) {
  double patience = timeout;
  for (const auto& brought : selection.brought) {
    patience = std::max(patience, kSecondsToLoad + brought->subject.seconds);
  }
  return patience;
}

void check_names(const Filters& filters) {
  const Declared declared = declared_in(filters.subjects);
  std::vector<std::string> losses = loss_names();
  std::ranges::copy(declared.own_losses, std::back_inserter(losses));
  check_known("loss", filters.losses, losses);
  check_known("property", filters.properties, property_names());
  check_known("dtype", filters.dtypes, float_dtype_names());
  if (filters.subjects.empty()) {
    check_known("implementation", filters.implementations, implementation_names());
  } else {
    std::vector<std::string> asked = filters.implementations;
    std::erase_if(asked, [&](const std::string& name) {
      return std::ranges::count(declared.twins, name) > 0;
    });
    check_known("subject", asked, declared.subjects);
  }
}

Selection select(const Filters& filters) {
  check_names(filters);
  Selection selection;
  if (filters.subjects.empty()) {
    select_known(filters, selection);
  } else {
    select_brought(filters, selection);
  }
  for (const properties::Property& property : properties::catalog()) {
    const bool off = property.tier == properties::Tier::hardening && !filters.hardening &&
                     filters.properties.empty();
    if (!off && named(filters.properties, property.name)) selection.properties.push_back(&property);
  }
  for (const Dtype dtype : kAllDtypes) {
    if (is_float(dtype) && named(filters.dtypes, name(dtype))) selection.dtypes.push_back(dtype);
  }
  return selection;
}

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const reference::Loss& loss : reference::catalog()) names.push_back(loss.signature.id);
  return names;
}

std::vector<std::string> implementation_names(std::string_view loss) {
  std::vector<std::string> names;
  for (const impl::Implementation& implementation : impl::catalog()) {
    if (loss.empty() || implementation.loss == loss) names.push_back(implementation.name);
  }
  return names;
}

std::vector<std::string> property_names() {
  std::vector<std::string> names;
  for (const properties::Property& property : properties::catalog()) names.push_back(property.name);
  return names;
}

std::vector<Dtype> dtypes_of(const LossSignature& signature) {
  const bool any = std::ranges::any_of(signature.fields,
                                       [](const Field& field) { return field.dtypes.empty(); });
  if (!any) return {Dtype::f32};
  return {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};
}

}  // namespace lossgate::ci
