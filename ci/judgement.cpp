// SPDX-License-Identifier: Apache-2.0
#include "ci/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ci/dump_variants.h"
#include "ci/errors.h"

namespace lossgate::ci {
namespace {

using corpora::Dump;
using impl::GuiltyLine;
using impl::Rerun;
using Word = Judgement::Word;

bool finite(const Tensor& tensor) {
  for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.size(); ++i) {
    if (!std::isfinite(tensor.at(i))) return false;
  }
  return true;
}

bool finite(const std::optional<Tensor>& loss,
            const std::vector<std::pair<std::string, Tensor>>& gradients) {
  return (!loss || finite(*loss)) &&
         std::ranges::all_of(gradients, [](const auto& pair) { return finite(pair.second); });
}

bool finite(const Rerun& rerun) {
  return rerun.raised.empty() && finite(rerun.loss, rerun.gradients);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// What an operation that makes a NaN or an infinity is a sign of.
std::string cause_of(const GuiltyLine& line) {
  const std::string& text = line.text;
  const auto says = [&](const char* part) { return text.find(part) != std::string::npos; };
  if (is_one_of(line.operation, {"exp", "expm1", "exp2", "sinh", "cosh"})) {
    return line.backward ? "clamp after exp" : "unbounded exponent";
  }
  if (is_one_of(line.operation, {"log", "log2", "log10"})) return "logarithm of an underflow";
  if (is_one_of(line.operation, {"mean", "std", "var"})) return "empty divisor";
  if (is_one_of(line.operation, {"softmax", "log_softmax", "logsumexp"}) || says("inf - inf") ||
      (line.operation == "sub" && says(" = nan"))) {
    return "infinity minus infinity";
  }
  if (is_one_of(line.operation, {"div", "reciprocal"})) {
    return line.backward ? "infinite slope" : "empty divisor";
  }
  if (line.operation == "mul" && says(" = nan")) return "zero times infinity";
  if (line.backward) return "infinite slope";
  if (is_one_of(line.operation, {"mul", "pow", "square", "sum", "add", "sub"})) {
    return "overflow of a square or sum";
  }
  return "overflow on a live path";
}

/// Of logits that are for the label behind them: the last of a row are for none.
std::vector<bool> moved_ahead(std::vector<bool> counted, std::int64_t tokens) {
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const bool last = (i + 1) % static_cast<std::size_t>(tokens) == 0;
    counted[i] = !last && counted[i + 1];
  }
  return counted;
}

std::optional<Counted> counted_in(const Dump& dump, bool shifts) {
  const auto counted = counted_positions(dump);
  if (!counted) return std::nullopt;
  const std::vector<std::int64_t> shape = positions_of(dump);
  const bool moved = shifts && shape.size() > 1 && shape[1] > 0;
  return Counted{*counted, moved ? moved_ahead(*counted, shape[1]) : *counted};
}

/// The suspect: a dump that was reproduced, and the experiments on it.
class Suspect {
 public:
  Suspect(const Dump& dump, const RunAgain& run, Rerun shown, bool shifts)
      : dump_(dump), run_(run), shown_(std::move(shown)), counted_(counted_in(dump, shifts)) {}

  Judgement judged() {
    if (auto given = given_above()) return *given;
    if (counted_ && mended(masked_zeroed(dump_, *counted_))) {
      return guilty(finite(shown_.loss, {}) ? "value repaired, gradient not"
                                            : "non-finite value behind a mask",
                    "finite with zeros behind the mask", first_masked());
    }
    if (auto given = given_as_input()) return *given;
    if (counted_ && mended(rows_counted(dump_, counted_->of_numbers))) {
      return guilty("empty divisor", "finite where every row has a token that counts",
                    std::nullopt);
    }
    const std::string cause = shown_.guilty ? cause_of(*shown_.guilty) : "not finite";
    return guilty(cause, shown_.guilty ? "the operation says so" : "", std::nullopt);
  }

 private:
  bool mended(const std::optional<Dump>& other) { return other && finite(run_(*other, false)); }

  static Judgement innocent(std::string why) {
    return {.word = Word::innocent, .why = std::move(why)};
  }

  /// What came from above was no number, or too large for the gradients.
  std::optional<Judgement> given_above() {
    if (!std::isfinite(dump_.upstream)) {
      return innocent(
          fmt::format("the gradient that came from above was {} already: look at what follows the "
                      "loss",
                      dump_.upstream));
    }
    if (dump_.upstream == 1.0 || dump_.upstream == 0.0) return std::nullopt;
    Dump unscaled = dump_;
    unscaled.upstream = 1.0;
    if (!mended(unscaled)) return std::nullopt;
    return innocent(
        fmt::format("finite with an upstream gradient of 1, not with {:.6g}: look at the "
                    "loss scale",
                    dump_.upstream));
  }

  /// A NaN where it counts, or an infinity that is no forbidden token of a row of logits, was
  /// there before the loss.
  std::optional<Judgement> given_as_input() {
    const std::optional<BadInput> bad = bad_input(dump_, counted_);
    if (!bad || !mended(bad->repaired)) return std::nullopt;
    if (bad->may_be_meant) return std::nullopt;
    return innocent(fmt::format("{} was {} when it came in: look at what made it",
                                place_text(dump_, bad->field, bad->index), bad->value));
  }

  struct Entry {
    std::string field;
    std::int64_t index = -1;
  };

  /// The first entry behind the mask whose gradient, or number, is at fault.
  std::optional<Entry> first_masked() const {
    for (const bool gradients : {true, false}) {
      for (const auto& [name, tensor] : gradients ? shown_.gradients : dump_.fields) {
        const std::int64_t each = counted_each(tensor);
        for (std::int64_t i = 0; each > 0 && is_float(tensor.dtype) && i < tensor.size(); ++i) {
          const bool counts = counted_->of(tensor)[static_cast<std::size_t>(i / each)];
          if (!counts && !std::isfinite(tensor.at(i))) {
            return Entry{name, i};
          }
        }
      }
    }
    return std::nullopt;
  }

  std::int64_t counted_each(const Tensor& tensor) const {
    const auto positions = static_cast<std::int64_t>(counted_->of_numbers.size());
    return positions > 0 && tensor.extents.size() > 1 && tensor.size() % positions == 0
               ? tensor.size() / positions
               : 0;
  }

  /// A gradient's entry that is no number.
  std::optional<Entry> bad_gradient() const {
    for (const auto& [name, tensor] : shown_.gradients) {
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        if (!std::isfinite(tensor.at(i))) return Entry{name, i};
      }
    }
    return std::nullopt;
  }

  Judgement guilty(const std::string& cause, std::string because,
                   std::optional<Entry> entry) const {
    Judgement judgement{
        .word = Word::guilty, .cause = cause, .because = std::move(because), .line = shown_.guilty};
    const std::vector<std::int64_t> shape = positions_of(dump_);
    // The operation's own element, where it is a position of the batch.
    const auto& element = shown_.guilty ? shown_.guilty->element : shape;
    const bool positional = shown_.guilty && shape.size() == 2 && element.size() >= 2 &&
                            element[0] < shape[0] && element[1] < shape[1] && !entry;
    if (positional) {
      judgement.row = element[0];
      judgement.token = element[1];
      judgement.place = fmt::format("token {}", coordinates_text(dump_, {element[0], element[1]}));
      return judgement;
    }
    if (!entry) entry = bad_gradient();
    if (!entry) return judgement;
    const Tensor& tensor = *dump_.find_field(entry->field);
    const std::vector<std::int64_t> at = coordinates(tensor.extents, entry->index);
    if (!at.empty()) judgement.row = at[0];
    if (at.size() > 1) judgement.token = at[1];
    judgement.place = place_text(dump_, entry->field, entry->index);
    return judgement;
  }

  const Dump& dump_;
  const RunAgain& run_;
  Rerun shown_;
  std::optional<Counted> counted_;
};

}  // namespace

bool observed_finite(const Dump& dump) {
  const bool any = dump.observed || !dump.gradients.empty();
  return any && finite(dump.observed, dump.gradients);
}

bool runs_as_there(const Dump& dump, std::string_view device, const impl::Greeting& greeting) {
  const auto is_there = [&](const auto& version) {
    const std::string there = dump.run_fact(version.first);
    return there.empty() || there == version.second;
  };
  return dump.run_fact("device") == device && std::ranges::all_of(greeting.versions, is_there);
}

Judgement judge(const Dump& dump, const RunAgain& run, bool shifts) {
  if (observed_finite(dump)) {
    return {.word = Word::innocent, .why = "its input gradients are finite: look below"};
  }
  Rerun shown = run(dump, true);
  if (!shown.raised.empty()) throw InputError("the function raised " + shown.raised);
  if (finite(shown)) return {.word = Word::not_reproduced};
  return Suspect(dump, run, std::move(shown), shifts).judged();
}

}  // namespace lossgate::ci
