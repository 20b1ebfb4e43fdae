// SPDX-License-Identifier: Apache-2.0
#include "ci/none_left.h"

#include <fmt/format.h>

#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

using Names = std::vector<std::string>;

std::string asked_in(const std::string& what, const std::vector<Dtype>& dtypes) {
  Names names;
  for (const Dtype dtype : dtypes) names.emplace_back(name(dtype));
  return fmt::format("{} is asked in {}{}", what, fmt::join(names, ", "),
                     names.size() == 1 ? " alone" : "");
}

/// " of jsd called my_loss", as far as the filters say so.
std::string sought(const Filters& filters) {
  std::string text;
  if (!filters.losses.empty()) text += fmt::format(" of {}", fmt::join(filters.losses, ", "));
  if (!filters.implementations.empty()) {
    text += fmt::format(" called {}", fmt::join(filters.implementations, ", "));
  }
  return text;
}

std::string no_subject(const Filters& filters) {
  Names files, there;
  for (const SubjectFile& file : filters.subjects) {
    files.push_back(file.name);
    for (const impl::Subject& subject : subjects_of(file)) {
      there.push_back(fmt::format("{} ({})", subject.name, subject.loss));
    }
  }
  return fmt::format("no subject{} in {}, which has {}", sought(filters), fmt::join(files, ", "),
                     fmt::join(there, ", "));
}

std::string no_implementation(const Filters& filters) {
  Names there;
  for (const std::string& loss : filters.losses) {
    Names names;
    for (const impl::Implementation& each : impl::catalog()) {
      if (each.loss == loss && !each.fault) names.push_back(each.name);
    }
    if (names.empty()) continue;
    there.push_back(fmt::format("{} has {}", loss, fmt::join(names, ", ")));
  }
  return fmt::format("no implementation{}{}{}", sought(filters), there.empty() ? "" : "; ",
                     fmt::join(there, "; "));
}

}  // namespace

std::string none_left(const Filters& filters, const Selection& left) {
  Names asked;
  for (const auto& brought : left.brought) {
    asked.push_back(asked_in(brought->implementation.name, brought->dtypes));
  }
  if (left.brought.empty()) {
    for (const reference::Loss* loss : left.losses) {
      asked.push_back(asked_in(loss->signature.id, dtypes_of(loss->signature)));
    }
  }
  if (!asked.empty()) return fmt::format("{}", fmt::join(asked, "; "));
  return filters.subjects.empty() ? no_implementation(filters) : no_subject(filters);
}

}  // namespace lossgate::ci
