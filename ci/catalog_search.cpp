// SPDX-License-Identifier: Apache-2.0
#include "ci/catalog_search.h"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <tuple>
#include <utility>

#include "ci/progress.h"
#include "ci/unmatched.h"
#include "impl/external/process.h"
#include "impl/external/session.h"

namespace lossgate::ci {
namespace {

/// Seconds for one call. The first may import or compile what the rest needs; the file says so
/// where one took more than half of what a subject has by default.
constexpr double kPatience = 60.0;

impl::Subject subject_of(const IdentifyOptions& options) {
  impl::Subject subject = function_named(options.entry);
  subject.interpreter = options.interpreter;
  subject.seconds = kPatience;
  return subject;
}

/// The function in its process, which stays while it is asked as one loss after the other.
class BroughtFunction : public Function {
 public:
  explicit BroughtFunction(const impl::Subject& subject)
      : session_(std::make_shared<impl::Session>(subject, LossSignature{})) {}

  impl::Greeting bind(const impl::Subject& subject, const LossSignature& loss) override {
    session_->become(subject, loss);
    return session_->greeting();
  }

  LossResult answer(const impl::Subject& subject, const LossSignature& narrowed,
                    const Case& c) override {
    const auto start = Clock::now();
    LossResult result =
        impl::brought_implementation(subject, narrowed, session_).evaluate(narrowed, c);
    longest_ = std::max(longest_, Clock::now() - start);
    return result;
  }

  Hosts hosts() const { return {session_->host()}; }

  bool is_slow() const {
    return longest_ > std::chrono::duration<double>(impl::Subject().seconds / 2);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::duration longest_ = {};  ///< of its calls
  std::shared_ptr<impl::Session> session_;
};

/// How much has to be supposed where it is the loss: fields and options that it is not told.
std::size_t supposed(const Recognition& a) {
  return impl::optional_fields_not_taken(a.greeting, a.loss->signature).size() +
         a.likeness.candidate.options.size();
}

/// The likest first; where several are the loss, that which says most of the parameters, and then
/// that which supposes least.
auto rank(const Recognition& a) {
  const int reductions = static_cast<int>(a.subject.reductions.size());
  const int arguments = a.whole() ? static_cast<int>(a.greeting.arguments.size()) : 0;
  const std::size_t suppositions = a.whole() ? supposed(a) : 0;
  const double share = static_cast<double>(a.likeness.equal) / std::max(a.likeness.cases, 1);
  return std::tuple(-reductions, -arguments, suppositions, a.likeness.factor == 0.0, -share,
                    a.remarks.empty(), a.likeness.distance, a.loss);
}

class Search {
 public:
  explicit Search(const IdentifyOptions& options)
      : options_(options), subject_(subject_of(options)), function_(subject_) {}

  Searched run() {
    auto found = through(nullptr);
    if (!found.empty() && !found.front().whole()) found = through(&found);
    return {std::move(found), std::move(complaint_), function_.hosts()};
  }

 private:
  bool is_wanted(const reference::Loss& loss) const {
    const auto& only = options_.losses;
    return only.empty() || std::ranges::find(only, loss.signature.id) != only.end();
  }

  /// Thoroughly where it was asked before, in one way: what was answered then is known.
  std::vector<Recognition> through(const std::vector<Recognition>* before) {
    const auto wanted = [this](const reference::Loss& loss) { return is_wanted(loss); };
    Progress progress(std::ranges::count_if(reference::catalog(), wanted), 0,
                      before ? "losses, asked in other ways" : "losses");
    std::vector<Recognition> found;
    Unmatched unmatched;
    for (const reference::Loss& loss : std::views::filter(reference::catalog(), wanted)) {
      progress.show();
      try {
        found.push_back(asked_as(loss, before));
      } catch (const impl::ParametersUnmatched& error) {
        unmatched.add(loss.signature, error);
      } catch (const impl::SubjectError& error) {  // it is not there, say
        if (complaint_.empty()) complaint_ = error.what();
      } catch (const impl::ProcessEnded& error) {
        complaint_ = std::string("the function ") + error.what();
      } catch (const impl::ProcessHung& error) {
        complaint_ = std::string("the function ") + error.what();
      }
      progress.add_cases(1);
    }
    if (complaint_.empty()) complaint_ = unmatched.text();
    for (Recognition& each : found) {
      each.subject.seconds = function_.is_slow() ? kPatience : impl::Subject().seconds;
    }
    std::ranges::sort(found, {}, rank);
    return found;
  }

  Recognition asked_as(const reference::Loss& loss, const std::vector<Recognition>* before) {
    if (!before) return recognise(function_, loss, subject_, false);
    const auto known = std::ranges::find(*before, &loss, &Recognition::loss);
    if (known == before->end() || !known->plainly)
      return recognise(function_, loss, subject_, true);
    return recognise_further(function_, *known);
  }

  const IdentifyOptions& options_;
  impl::Subject subject_;
  BroughtFunction function_;
  std::string complaint_;
};

}  // namespace

Searched search_catalog(const IdentifyOptions& options) { return Search(options).run(); }

}  // namespace lossgate::ci
