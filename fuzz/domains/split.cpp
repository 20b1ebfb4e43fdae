// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/split.h"

#include <algorithm>
#include <utility>

#include "reference/spec/even_parts.h"

namespace lossgate::fuzz {
namespace {

constexpr Share<SplitForm> kForms[] = {
    {SplitForm::whole, {6, 1, 1}},       {SplitForm::halves, {3, 1, 1}},
    {SplitForm::of_one_size, {2, 4, 3}}, {SplitForm::one_by_one, {1, 1, 2}},
    {SplitForm::ranks, {1, 2, 2}},       {SplitForm::random, {1, 2, 3}},
    {SplitForm::empty_parts, {0, 2, 2}}, {SplitForm::idle_rank, {0, 1, 1}},
    {SplitForm::shuffled, {0, 2, 2}},
};

/// `count` empty parts, dealt to the ranks in turn.
Split empty_split(int world, std::int64_t count) {
  Split split{.world = world, .parts = std::vector<Split::Part>(static_cast<std::size_t>(count))};
  for (std::size_t i = 0; i < split.parts.size(); ++i) {
    split.parts[i].rank = static_cast<int>(i % static_cast<std::size_t>(world));
  }
  return split;
}

void deal_at_random(Split& split, std::int64_t sequences, Choices& choices) {
  const auto last = static_cast<std::int64_t>(split.parts.size()) - 1;
  for (std::int64_t s = 0; s < sequences; ++s) {
    split.parts[static_cast<std::size_t>(choices.integer(0, last))].sequences.push_back(s);
  }
}

void remove_empty_parts(Split& split) {
  std::erase_if(split.parts, [](const Split::Part& part) { return part.sequences.empty(); });
}

void shuffle(Split& split, Choices& choices) {
  for (Split::Part& part : split.parts) {
    for (std::size_t i = part.sequences.size(); i > 1; --i) {
      const auto other =
          static_cast<std::size_t>(choices.integer(0, static_cast<std::int64_t>(i) - 1));
      std::swap(part.sequences[i - 1], part.sequences[other]);
    }
  }
}

}  // namespace

SplitForm pick_split_form(Temper temper, Choices& choices) { return pick(kForms, temper, choices); }

Split draw_split(SplitForm form, std::int64_t sequences, Choices& choices) {
  switch (form) {
    case SplitForm::whole:
      return {};
    case SplitForm::halves:
    case SplitForm::one_by_one:
    case SplitForm::ranks: {
      const int world = form == SplitForm::ranks ? static_cast<int>(choices.integer(2, 4)) : 1;
      const std::int64_t parts = form == SplitForm::halves       ? 2
                                 : form == SplitForm::one_by_one ? sequences
                                                                 : world;
      Split split = empty_split(world, parts);
      for (std::int64_t s = 0; s < sequences; ++s) {
        split.parts[static_cast<std::size_t>(s * parts / sequences)].sequences.push_back(s);
      }
      return split;
    }
    case SplitForm::of_one_size: {
      const std::int64_t most = std::max<std::int64_t>(sequences - 1, 1);
      const std::int64_t size = choices.integer(std::min<std::int64_t>(2, most), most);
      Split split =
          empty_split(static_cast<int>(choices.integer(1, 2)), (sequences + size - 1) / size);
      for (std::int64_t s = 0; s < sequences; ++s) {
        split.parts[static_cast<std::size_t>(s / size)].sequences.push_back(s);
      }
      return split;
    }
    case SplitForm::random:
    case SplitForm::empty_parts:
    case SplitForm::idle_rank:
    case SplitForm::shuffled: {
      const int world = static_cast<int>(choices.integer(1, 4));
      Split split = empty_split(world, choices.integer(1, sequences + 2));
      deal_at_random(split, sequences, choices);
      if (form == SplitForm::shuffled) shuffle(split, choices);
      if (form == SplitForm::empty_parts) {
        split.parts.push_back(
            {.rank = static_cast<int>(choices.integer(0, world - 1)), .sequences = {}});
      } else {
        remove_empty_parts(split);
      }
      // As many as a machine has, or a few.
      constexpr int kIdle[] = {1, 7, 63};
      if (form == SplitForm::idle_rank) split.world += choices.one_of(kIdle);
      return split;
    }
  }
  return {};
}

void gather(Split& split) {
  split.world = 1;
  for (Split::Part& part : split.parts) part.rank = 0;
}

void split_sequences(const LossSignature& signature, Temper temper, Case& c, Choices& choices) {
  c.split = draw_split(pick_split_form(temper, choices), c.shape[Axis::sequences], choices);
  if (!signature.shardable) gather(c.split);
  make_parts_even(signature, c);
}

}  // namespace lossgate::fuzz
