// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ci/errors.h"
#include "ci/suggestion.h"
#include "ci/verbs.h"
#include "fuzz/profile.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

void list_losses() {
  fmt::print("losses\n");
  for (const reference::Loss& loss : reference::catalog()) {
    fmt::print("  {:<28}{}\n", loss.signature.id, loss.signature.title);
  }
}

void list_properties() {
  fmt::print("properties\n");
  for (const properties::Property& property : properties::catalog()) {
    fmt::print("  {:<36}{:<11}{}\n", property.name, name(property.tier), property.rules);
  }
}

std::string_view description(fuzz::Profile profile) {
  switch (profile) {
    case fuzz::Profile::benign:
      return "what an ordinary unit test would see";
    case fuzz::Profile::hostile:
      return "nine out of ten cases sit on some edge";
    case fuzz::Profile::soak:
      return "hostile, now and then larger and more extreme";
  }
  return "";
}

void list_profiles() {
  fmt::print("profiles\n");
  for (const fuzz::Profile profile : fuzz::kAllProfiles) {
    fmt::print("  {:<28}{}\n", name(profile), description(profile));
  }
}

void list_implementations() {
  for (const bool faulty : {false, true}) {
    fmt::print("{} implementations\n", faulty ? "faulty" : "sound");
    for (const impl::Implementation& i : impl::catalog()) {
      if (i.fault.has_value() != faulty) continue;
      fmt::print("  {:<40} {:<20} {}\n", i.name, i.loss, faulty ? i.fault->cause : i.device);
    }
  }
  if (!impl::torch_status().empty()) fmt::print("LibTorch: {}\n", impl::torch_status());
}

struct Section {
  const char* name;
  void (*print)();
  bool cheap;
};

constexpr Section kSections[] = {{"losses", list_losses, true},
                                 {"implementations", list_implementations, false},
                                 {"properties", list_properties, true},
                                 {"profiles", list_profiles, true}};

}  // namespace

int run_list(const std::string& what) {
  std::vector<std::string> names;
  for (const Section& section : kSections) names.emplace_back(section.name);
  if (!what.empty() && std::ranges::find(names, what) == names.end()) {
    throw InputError(unknown_name("list", what, names));
  }
  for (const Section& section : kSections) {
    if (what.empty() ? section.cheap : what == section.name) section.print();
  }
  if (what.empty()) fmt::print("implementations: lossgate list implementations\n");
  return static_cast<int>(Exit::green);
}

}  // namespace lossgate::ci
