// SPDX-License-Identifier: Apache-2.0
#include "impl/external/c/library.h"

#include <dlfcn.h>

#include <filesystem>

#include "impl/external/subject.h"

namespace lossgate::impl {
namespace {

namespace fs = std::filesystem;

void check_declaration(const std::string& file, const std::string& name,
                       const lossgate_declaration* declaration, const void* function) {
  const std::string needed = "LOSSGATE_LOSS(" + name + ", \"log_prob mask ...\") { ... }";
  if (!function && !declaration) {
    throw SubjectError(file + " has no function '" + name + "'; define it with " + needed);
  }
  if (!function || !declaration) {
    throw SubjectError(
        "'" + name + "' of " + file +
        " is no loss that lossgate can call; include lossgate.h and define it with " + needed);
  }
  if (declaration->version < 1 || declaration->version > LOSSGATE_VERSION) {
    throw SubjectError("'" + name + "' of " + file + " was compiled with version " +
                       std::to_string(declaration->version) + " of lossgate.h; this command has " +
                       std::to_string(LOSSGATE_VERSION) +
                       ": compile it with the header of the same installation");
  }
  if (!declaration->takes || !declaration->file) {
    throw SubjectError("'" + name + "' of " + file + " declares nothing; define it with " + needed);
  }
}

}  // namespace

LibraryFunction open_library(const std::string& entry) {
  const std::size_t colon = entry.rfind(':');
  if (!entry.starts_with("so:") || colon < 4 || colon + 1 == entry.size()) {
    throw SubjectError("the entry must be so:LIBRARY.so:FUNCTION");
  }
  const std::string file = entry.substr(3, colon - 3), name = entry.substr(colon + 1);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    throw SubjectError("there is no file " + file + " in " + fs::current_path().string());
  }
  // With its folder, or it would be looked for among the system's libraries.
  void* library = ::dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw SubjectError(std::string("it cannot be opened: ") + ::dlerror());
  const auto* declaration =
      static_cast<const lossgate_declaration*>(::dlsym(library, (name + "_lossgate").c_str()));
  void* function = ::dlsym(library, name.c_str());
  check_declaration(file, name, declaration, function);
  return {.call = reinterpret_cast<int (*)(lossgate_call*)>(function),
          .name = name,
          .takes = declaration->takes,
          .file = declaration->file,
          .line = declaration->line};
}

}  // namespace lossgate::impl
