// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "impl/external/omission.h"
#include "impl/external/session.h"
#include "impl/implementation.h"
#include "reference/reference.h"

namespace lossgate::ci {

/// Processes in which subjects are loaded already, of this process alone.
using Hosts = std::vector<std::shared_ptr<impl::Host>>;

/// A lossgate.toml: its text, how messages call it, and the folder where its paths begin.
struct SubjectFile {
  std::string text, name, folder;
  /// What its subjects said when they were loaded, by name: spares a worker to load those that it
  /// does not ask.
  std::map<std::string, impl::Greeting> greetings = {};
  Hosts hosts = {};  ///< for those of them that they serve
};

/// A loss that a user brings, loaded: the loss under the narrowed signature, and how it is asked.
struct Brought {
  reference::Loss loss;
  impl::Implementation implementation;
  impl::Greeting greeting;
  std::string file;       ///< the SubjectFile's name
  impl::Subject subject;  ///< as declared, with `fixed` among its options
  std::shared_ptr<impl::Session> session;
  std::vector<Dtype> dtypes;
  std::vector<std::string> fixed;  ///< options that do not reach the function, nor are declared
};

/// The signature of the subject's loss, its own or the catalog's, whatever it narrows.
const LossSignature& whole_signature(const impl::Subject& subject);

/// Loads all subjects of the file, each with its twins behind it, that leave fields out which its
/// function may be called without; or those that have one of the names, if there are any. Throws
/// InputError.
std::vector<std::shared_ptr<const Brought>> bring(const SubjectFile& file,
                                                  const std::vector<std::string>& names);

/// Loads them, and keeps in the file what they said and where they run.
void load_here(SubjectFile& file, const std::vector<std::string>& names);

/// A function that is named as FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION, from here, and nothing
/// else said of it. Throws InputError.
impl::Subject function_named(const std::string& name);

/// A line for each of its parameters that nothing reaches.
std::string left_text(const impl::Greeting& greeting);

/// The same function as another declaration of it would be asked.
Brought redeclared(const Brought& brought, impl::Subject subject);

/// The subjects of the file as it declares them, not loaded. Throws InputError.
std::vector<impl::Subject> subjects_of(const SubjectFile& file);

/// The names that a subject's twins have, where no declared one is called so.
std::vector<impl::Omission> omissions_in(const std::vector<impl::Subject>& declared,
                                         const impl::Subject& subject);

/// Reads a lossgate.toml. Throws FormatError.
SubjectFile read_subject_file(const std::string& path);

}  // namespace lossgate::ci
