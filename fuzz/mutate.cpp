// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fuzz/domains/options.h"
#include "fuzz/domains/shape.h"
#include "fuzz/draw_case.h"
#include "fuzz/level_rows.h"
#include "fuzz/moved_value.h"
#include "fuzz/transplant.h"
#include "reference/spec/lists.h"

namespace lossgate::fuzz {
namespace {

/// The most work that a case may grow to.
constexpr std::int64_t kMostWork = 1 << 14;

/// What may stand in the one field may stand in the other.
bool may_be_equal(const Field& from, const Field& to, const LossSpec& spec, const Tensor& source) {
  if (from.quantity != to.quantity || from.masked != to.masked || to.absent) return false;
  if (to.role == Role::weight && from.role != Role::weight) return false;
  if (infinity_of(from, spec) == infinity_of(to, spec)) return true;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    if (std::isinf(source.at(i))) return false;
  }
  return true;
}

class Mutating {
 public:
  Mutating(const LossSignature& signature, Profile profile, const Case& c, Choices& choices)
      : signature_(signature), profile_(profile), case_(c), choices_(choices) {}

  Case apply(Mutation mutation) {
    switch (mutation) {
      case Mutation::value:
        value();
        break;
      case Mutation::data:
        data();
        break;
      case Mutation::sentinels:
        sentinels();
        break;
      case Mutation::positions:
        positions();
        break;
      case Mutation::option:
        option();
        break;
      case Mutation::shape:
        shape();
        break;
      case Mutation::sequence:
        sequence();
        break;
      case Mutation::equal:
        equal();
        break;
      case Mutation::surroundings:
        surroundings();
        break;
    }
    level_rows(signature_, case_);
    return std::move(case_);
  }

 private:
  Case like(const Case& frame, Keep keep) {
    return draw_like(signature_, frame, keep, profile_, choices_);
  }

  const Field& some_field() { return choices_.one_of(std::span<const Field>(signature_.fields)); }

  void value() {
    if (signature_.fields.empty()) return;
    const int moves = static_cast<int>(choices_.integer(1, 4));
    const Field& field = some_field();
    for (int i = 0; i < moves; ++i) move_value(signature_, field, profile_, case_, choices_);
  }

  /// One position, one sequence, or everything.
  Region some_region() {
    Region region(case_, true);
    if (region.sequences() == 0 || region.tokens() == 0) return region;
    const std::int64_t sequence = choices_.integer(-1, region.sequences() - 1);
    const std::int64_t token = choices_.integer(-1, region.tokens() - 1);
    for (std::int64_t s = 0; s < region.sequences(); ++s) {
      for (std::int64_t t = 0; t < region.tokens(); ++t) {
        region.set(s, t, (sequence < 0 || s == sequence) && (token < 0 || t == token));
      }
    }
    return region;
  }

  void data() {
    if (signature_.fields.empty()) return;
    const Quantity quantity = some_field().quantity;
    if (shape_follows_data(signature_)) {
      case_ = like(case_, Keep::frame);
      return;
    }
    const Region region = some_region();
    const Case donor = like(case_, Keep::positions);
    for (const Field& field : signature_.fields) {
      if (field.quantity != quantity) continue;
      take(field, donor, field.one_per_sequence ? Region(case_, true) : region, case_);
    }
  }

  void sentinels() {
    const Region valid = valid_region(signature_, case_);
    Region masked(case_, false);
    for (std::int64_t s = 0; s < valid.sequences(); ++s) {
      for (std::int64_t t = 0; t < valid.tokens(); ++t) masked.set(s, t, !valid.has(s, t));
    }
    const Case donor = like(case_, Keep::positions);
    for (const Field& field : signature_.fields) {
      if (is_positional(field) && !field.one_per_sequence) take(field, donor, masked, case_);
    }
  }

  void positions() { become(like(case_, Keep::frame)); }

  /// Becomes the donor, but for what counts in both cases and the surroundings.
  void become(Case donor) {
    if (shape_follows_data(signature_)) return;
    const Region both = common_region(signature_, case_, donor);
    for (const Field& field : signature_.fields) take(field, case_, both, donor);
    donor.layout = case_.layout;
    donor.upstream = case_.upstream;
    if (donor.shape[Axis::sequences] == case_.shape[Axis::sequences]) donor.split = case_.split;
    donor.provenance = case_.provenance;
    case_ = std::move(donor);
  }

  void option() {
    const auto options = static_cast<std::int64_t>(signature_.options.size());
    const auto reductions = static_cast<std::int64_t>(signature_.reductions.size());
    if (options + reductions == 0) return;
    LossSpec spec = case_.spec;
    const std::int64_t which = choices_.integer(0, options + (reductions > 1 ? 0 : -1));
    if (which < 0 || which >= options) {
      spec.reduction = choices_.one_of(std::span<const Reduction>(signature_.reductions));
    } else {
      const Option& chosen = signature_.options[static_cast<std::size_t>(which)];
      const Temper temper = profile_ == Profile::benign ? Temper::plain : Temper::nasty;
      spec.set(chosen.name, draw_option(chosen, temper, choices_));
      follow(signature_, spec);
    }
    if (accepts(signature_, case_, spec)) case_.spec = std::move(spec);
  }

  void shape() {
    std::vector<Axis> axes;
    for (Axis axis : kAllAxes) {
      if (case_.shape[axis] > 0 && !signature_.pinned_extent(axis)) axes.push_back(axis);
    }
    if (axes.empty() || shape_follows_data(signature_)) return;
    const Axis axis = choices_.one_of(std::span<const Axis>(axes));
    const std::int64_t extent = case_.shape[axis], least = signature_.least_extent(axis);
    const std::array<std::int64_t, 5> extents = {extent - 1, extent + 1, extent / 2, 2 * extent,
                                                 least};
    Case frame = case_;
    frame.shape[axis] = std::max(least, choices_.one_of(std::span<const std::int64_t>(extents)));
    if (frame.shape[axis] > signature_.longest_extent(axis).value_or(frame.shape[axis])) return;
    if (!has_room_for_lists(signature_, frame.shape)) return;
    if (work(frame.shape) > std::max(kMostWork, work(case_.shape))) return;
    const bool positions_change = axis == Axis::sequences || axis == Axis::tokens;
    Case donor = like(frame, positions_change ? Keep::frame : Keep::positions);
    if (axis == Axis::vocab) {  // its labels are not those of the other vocabulary
      for (const Field& field : signature_.fields) {
        if (field.quantity == Quantity::label)
          case_.batch.at(field.name) = donor.batch.at(field.name);
      }
    }
    become(std::move(donor));
  }

  void sequence() {
    const std::int64_t sequences = case_.shape[Axis::sequences];
    if (sequences < 2 || shape_follows_data(signature_)) return;
    const std::int64_t from = choices_.integer(0, sequences - 1);
    const std::int64_t to = choices_.integer(0, sequences - 1);
    for (const Field& field : signature_.fields) {
      Tensor& tensor = case_.batch.at(field.name);
      if (!has_rows(field.axes)) continue;
      if (field.quantity == Quantity::group) continue;  // whose members are not copied
      const std::size_t row = tensor.bytes.size() / static_cast<std::size_t>(sequences);
      std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(row) * from, row,
                  tensor.bytes.begin() + static_cast<std::ptrdiff_t>(row) * to);
    }
  }

  void equal() {
    if (signature_.fields.empty()) return;
    const Field &from = some_field(), &to = some_field();
    Tensor& target = case_.batch.at(to.name);
    const Tensor& source = case_.batch.at(from.name);
    const bool alike = from.axes == to.axes && is_alike(source, target) && is_float(source.dtype) &&
                       from.one_per_sequence == to.one_per_sequence;
    if (alike && may_be_equal(from, to, case_.spec, source)) target = source;
  }

  void surroundings() {
    Case donor = like(case_, Keep::positions);
    switch (choices_.integer(0, 2)) {
      case 0:
        case_.split = std::move(donor.split);
        break;
      case 1:
        case_.layout = donor.layout;
        break;
      default:
        case_.upstream = donor.upstream;
    }
  }

  const LossSignature& signature_;
  Profile profile_;
  Case case_;
  Choices& choices_;
};

constexpr Share<Mutation> kShares[] = {
    {Mutation::value, {6, 6, 6}},        {Mutation::data, {3, 3, 3}},
    {Mutation::sentinels, {2, 2, 2}},    {Mutation::positions, {1, 1, 1}},
    {Mutation::option, {2, 2, 2}},       {Mutation::shape, {2, 2, 2}},
    {Mutation::sequence, {1, 1, 1}},     {Mutation::equal, {1, 1, 1}},
    {Mutation::surroundings, {2, 2, 2}},
};

}  // namespace

Case mutated(Mutation mutation, const LossSignature& signature, Profile profile, const Case& c,
             Choices& choices) {
  return Mutating(signature, profile, c, choices).apply(mutation);
}

Case mutated(const LossSignature& signature, Profile profile, const Case& c, Choices& choices) {
  const Mutation mutation = pick(kShares, Temper::plain, choices);
  return mutated(mutation, signature, profile, c, choices);
}

}  // namespace lossgate::fuzz
