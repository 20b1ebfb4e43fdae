// SPDX-License-Identifier: Apache-2.0
#include "ci/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <system_error>

#include "ci/errors.h"
#include "ci/stored_case.h"
#include "ci/suggestion.h"
#include "corpora/files.h"
#include "fuzz/draw_case.h"
#include "fuzz/long_case.h"
#include "impl/catalog.h"

namespace lossgate::ci {
namespace {

namespace fs = std::filesystem;

// How a stored case is called in records: by its place below the folder's parent, never from the
// root of a disk.
std::string shown(const fs::path& folder, const fs::path& file) {
  const fs::path base = fs::absolute(folder).lexically_normal();
  const fs::path named = base.has_filename() ? base : base.parent_path();
  return (named.filename() / file.lexically_relative(folder)).generic_string();
}

bool has_implementation(const std::string& loss, const std::string& name, bool with_torch) {
  return std::ranges::any_of(impl::catalog(with_torch), [&](const impl::Implementation& one) {
    return one.loss == loss && one.name == name;
  });
}

bool is_standard(const std::string& folder) {
  std::error_code error;
  return std::ranges::any_of(standard_corpora(), [&](const std::string& standard) {
    return fs::equivalent(folder, standard, error);
  });
}

}  // namespace

Plan::Plan(const PlanOptions& options) : options_(options), selection_(select(options.filters)) {
  for (const std::string& folder : options_.corpora) add_corpus(folder);
  add_streams();
  for (const auto& brought : selection_.brought) {
    for (SubjectFile& file : options_.filters.subjects) {
      if (file.name != brought->file) continue;
      file.greetings.emplace(brought->implementation.name, brought->greeting);
    }
  }
}

void Plan::add_corpus(const std::string& folder) {
  std::map<std::pair<std::string, std::string>, std::int64_t> reasons;  // of each loss
  const std::size_t before = stored_.size();
  const bool is_ours = is_standard(folder);
  for (const fs::path& file : corpora::list_case_files(folder)) {
    PlannedCase planned;
    planned.file = shown(folder, file);
    planned.c = read_case(file, selection_);
    const std::string loss = planned.c.spec.loss;
    if (const auto why = add_stored(std::move(planned), is_ours)) ++reasons[{loss, *why}];
  }
  if (reasons.empty() || is_ours) return;
  if (stored_.size() == before) idle_corpora_.push_back(folder);
  for (const auto& [reason, count] : reasons) {
    unfit_.push_back({.corpus = corpus_name(folder),
                      .loss = reason.first,
                      .reason = reason.second,
                      .cases = count});
  }
}

/// For all implementations in the catalog, or for each brought subject that may be asked.
std::optional<std::string> Plan::add_stored(PlannedCase planned, bool is_ours) {
  planned.dtype = float_dtype(*selection_.find_signature(planned.c.spec.loss), planned.c);
  if (!selection_.has(planned.dtype)) return std::nullopt;
  if (selection_.brought.empty()) {
    planned.loss = reference::find_loss(planned.c.spec.loss);
    planned.expected = expectations_of(planned.c, planned.file);
    if (selection_.has(*planned.loss)) stored_.push_back(std::move(planned));
    return std::nullopt;
  }
  std::optional<std::string> unfit;
  bool fits = false;
  for (const auto& brought : selection_.brought) {
    const LossSignature& signature = brought->loss.signature;
    if (signature.id != planned.c.spec.loss) continue;
    PlannedCase own = planned;
    own.c = as_its_callers_have_it(signature, std::move(own.c));
    if (const auto why = brought->implementation.unsupported(own.c)) {
      auto other = is_ours ? at_its_options(*brought, std::move(own.c)) : std::nullopt;
      if (!other || brought->implementation.unsupported(*other)) {
        if (!unfit) unfit = why;
        continue;
      }
      own.c = *std::move(other);
    }
    own.outside_contract = is_outside_contract(*brought, own.c);
    own.loss = &brought->loss;
    own.only = &brought->implementation;
    stored_.push_back(std::move(own));
    fits = true;
  }
  return fits ? std::nullopt : unfit;
}

void Plan::add_streams() {
  std::vector<std::vector<Stream>> losses;
  if (selection_.brought.empty()) {
    for (const reference::Loss* loss : selection_.losses) {
      auto& streams = losses.emplace_back();
      for (const Dtype dtype : dtypes_of(loss->signature)) {
        if (selection_.has(dtype)) streams.push_back({loss, dtype});
      }
      std::ranges::copy(streams, std::back_inserter(streams_));
    }
  }
  for (const auto& brought : selection_.brought) {
    const bool is_ours_to_end = !brought->subject.entry.starts_with("fd:");
    std::vector<Stream> streams;
    for (const Dtype dtype : brought->dtypes) {
      if (!selection_.has(dtype)) continue;
      streams.push_back(
          {&brought->loss, dtype, &brought->implementation, brought->subject.most_cases});
    }
    std::ranges::copy(streams, std::back_inserter(streams_));
    if (is_ours_to_end) losses.push_back(std::move(streams));
  }
  for (const auto& streams : losses) add_long_streams(streams);
}

/// Whoever asks a handful of cases does not wait for them; nor does a function in the process of
/// its caller, where nothing can end it.
void Plan::add_long_streams(const std::vector<Stream>& of_one_loss) {
  if (of_one_loss.empty() || options_.cases == 0) return;
  std::vector<Dtype> dtypes;
  for (const Stream& stream : of_one_loss) dtypes.push_back(stream.dtype);
  Stream stream = of_one_loss.front();
  const LossSignature& signature = stream.loss->signature;
  const auto lengths = fuzz::lengths_of(options_.seed, signature, dtypes);
  if (cases_of(stream) < kWithLongCases) {
    if (!lengths.empty()) without_long_cases_.insert(signature.id);
    return;
  }
  for (const fuzz::Length& length : lengths) {
    stream.length = length;
    stream.dtype = length.dtype;
    streams_.push_back(stream);
  }
}

std::int64_t Plan::cases_of(const Stream& stream) const {
  if (stream.length) return 1;
  return stream.most_cases > 0 ? std::min(options_.cases, stream.most_cases) : options_.cases;
}

std::int64_t Plan::size() const {
  auto size = static_cast<std::int64_t>(stored_.size());
  for (const Stream& stream : streams_) size += cases_of(stream);
  return size;
}

std::int64_t Plan::long_cases() const {
  return std::ranges::count_if(streams_, [](const Stream& s) { return s.length.has_value(); });
}

PlannedCase Plan::at(std::int64_t ordinal) const {
  const auto stored = static_cast<std::int64_t>(stored_.size());
  if (ordinal < stored) return stored_[static_cast<std::size_t>(ordinal)];
  std::int64_t index = ordinal - stored;
  for (const Stream& stream : streams_) {
    if (index < cases_of(stream)) return drawn(stream, options_.profile, index);
    index -= cases_of(stream);
  }
  throw std::out_of_range("no such case in the plan");
}

bool Plan::can_show(const impl::Implementation& variant) const {
  return !variant.fault->of_length || !streams_of(variant, true).empty();
}

std::int64_t Plan::hostile_draws(const impl::Implementation& variant) const {
  return std::ssize(streams_of(variant, false)) * options_.cases +
         std::ssize(streams_of(variant, true));
}

PlannedCase Plan::hostile_at(const impl::Implementation& variant, std::int64_t draw) const {
  const std::vector<Stream> streams = streams_of(variant, false);
  const std::int64_t of_all = std::ssize(streams) * options_.cases;
  if (draw >= of_all) {
    return drawn(streams_of(variant, true)[static_cast<std::size_t>(draw - of_all)],
                 fuzz::Profile::hostile, 0);
  }
  const std::size_t turn = static_cast<std::size_t>(draw) % streams.size();
  return drawn(streams[turn], fuzz::Profile::hostile, hostile_index(variant, draw));
}

std::int64_t Plan::hostile_index(const impl::Implementation& variant, std::int64_t draw) const {
  const std::int64_t each = std::ssize(streams_of(variant, false));
  const std::int64_t beyond = draw - each * options_.cases;
  return beyond < 0 ? draw / each : options_.cases + beyond;
}

std::vector<Plan::Stream> Plan::streams_of(const impl::Implementation& variant,
                                           bool long_ones) const {
  std::vector<Stream> streams;
  for (const Stream& stream : streams_) {
    const bool of_it = stream.loss->signature.id == variant.loss;
    if (of_it && stream.length.has_value() == long_ones) streams.push_back(stream);
  }
  return streams;
}

PlannedCase Plan::drawn(const Stream& stream, fuzz::Profile profile, std::int64_t index) const {
  const LossSignature& signature = stream.loss->signature;
  PlannedCase planned;
  planned.loss = stream.loss;
  planned.dtype = stream.dtype;
  planned.only = stream.only;
  planned.benign = stream.length ? is_plain(*stream.length) : profile == fuzz::Profile::benign;
  if (stream.length) {
    planned.long_axis = stream.length->extents.axis;
    planned.c = fuzz::draw_long_case(options_.seed, signature, *stream.length);
    return planned;
  }
  fuzz::Choices choices = fuzz::case_choices(options_.seed, signature.id, stream.dtype, profile,
                                             static_cast<std::uint64_t>(index));
  planned.c = fuzz::draw_case(signature, stream.dtype, profile, choices);
  return planned;
}

std::vector<regressions::Expectation> expectations_of(const Case& c, const std::string& file) {
  try {
    auto expected = regressions::parse_expectations(c.provenance.expect);
    for (const auto& [implementation, property] : expected) {
      if (!properties::find_property(property)) {
        throw std::invalid_argument(unknown_name("property", property, property_names()));
      }
      // A variant of the LibTorch library, which is opened for its own names alone, is no mistake
      // where the library is not there.
      if (has_implementation(c.spec.loss, implementation, false)) continue;
      if (impl::torch_status().empty() && !has_implementation(c.spec.loss, implementation, true)) {
        throw std::invalid_argument(
            unknown_name("implementation", implementation, implementation_names(c.spec.loss)));
      }
    }
    return expected;
  } catch (const std::invalid_argument& error) {
    throw corpora::FormatError(file, 0, "expect", error.what());
  }
}

std::string corpus_name(const std::string& folder) {
  return fs::path(folder + "/.").lexically_normal().parent_path().filename().string();
}

std::vector<std::string> standard_corpora() {
  std::error_code error;
  std::vector<fs::path> roots = {"."};
  for (fs::path at = fs::read_symlink("/proc/self/exe", error).parent_path();
       at.has_relative_path(); at = at.parent_path()) {
    roots.push_back(at);
  }
  for (const fs::path& root : roots) {
    const fs::path seeds = root / "corpora" / "seeds", regressions = root / "regressions";
    if (fs::is_directory(seeds, error) && fs::is_directory(regressions, error)) {
      return {regressions.lexically_normal().string(), seeds.lexically_normal().string()};
    }
  }
  return {};
}

}  // namespace lossgate::ci
