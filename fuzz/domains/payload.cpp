// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/payload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fuzz/domains/teacher_message.h"

namespace lossgate::fuzz {
namespace {

using Index = std::int64_t;

constexpr Share<Deviation> kDeviations[] = {
    {Deviation::none, {1, 40, 20}},           {Deviation::one_lacks_array, {0, 3, 2}},
    {Deviation::no_prompt, {0, 1, 1}},        {Deviation::prompt_at_length, {0, 3, 2}},
    {Deviation::lists_differ, {0, 3, 2}},     {Deviation::nan, {0, 3, 2}},
    {Deviation::plus_infinity, {0, 1, 1}},    {Deviation::negative_id, {0, 1, 1}},
    {Deviation::another_sequence, {0, 1, 1}}, {Deviation::cut_base64, {0, 3, 2}},
    {Deviation::bad_base64, {0, 1, 1}},       {Deviation::wrong_count, {0, 1, 1}},
    {Deviation::absurd_size, {0, 1, 1}},      {Deviation::key_missing, {0, 1, 1}},
    {Deviation::key_unknown, {0, 1, 1}},      {Deviation::cut_message, {0, 1, 1}},
    {Deviation::other_bytes, {0, 1, 2}},      {Deviation::noise, {0, 1, 1}},
};

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Legal log-probs that are easily lost on the way: zeros, subnormals, the ends of the format.
constexpr float kSpecial[] = {0.0F,       -0.0F,   -1e-45F, -1.17549435e-38F, -1e-7F,
                              -87.33655F, -104.0F, -1e9F,   -3.4028235e38F,   kMinusInfinity};

/// How often a response is in the binary form, which alone holds base64, and whose lists can differ
/// in their sums only.
constexpr double binary_share(Deviation deviation) {
  if (deviation == Deviation::cut_base64 || deviation == Deviation::bad_base64) return 1.0;
  return deviation == Deviation::lists_differ ? 0.25 : 0.6;
}

/// One of a list's items, by reference; the list is not empty.
template <class T>
T& any_of(std::vector<T>& items, Choices& choices) {
  return items[static_cast<std::size_t>(choices.integer(0, static_cast<Index>(items.size()) - 1))];
}

class MessageDraw {
 public:
  MessageDraw(const Shape& shape, Temper temper, Choices& choices)
      : tokens_(std::max<Index>(shape[Axis::tokens], 1)),
        support_(std::max<Index>(shape[Axis::support], 1)),
        temper_(temper),
        choices_(choices),
        deviation_(pick_deviation(temper, choices)),
        actual_log_probs_(!choices.sometimes(0.25)),
        actual_ids_(!choices.sometimes(0.25)) {}

  std::vector<std::string> draw(Index sequences, Index responses) {
    left_ = sequences;
    std::vector<Index> counts, worth_spoiling;
    for (Index r = 0; r < responses; ++r) {
      // Of a few responses each may have everything; of many, most have something.
      const Index left = responses - r, most = left > 4 ? 2 * sequences / left : sequences;
      counts.push_back(left > 1 ? choices_.integer(0, std::min(most, sequences)) : sequences);
      sequences -= counts.back();
      if (counts.back() > 0) worth_spoiling.push_back(r);
    }
    const Index deviant = any_of(worth_spoiling, choices_);
    std::vector<std::string> texts;
    for (Index r = 0; r < responses; ++r) {
      const bool deviates = r == deviant;
      texts.push_back(draw_response(counts[static_cast<std::size_t>(r)],
                                    deviates ? deviation_ : Deviation::none));
    }
    return texts;
  }

 private:
  bool plain() const { return temper_ == Temper::plain; }

  float draw_log_prob() {
    if (!plain() && choices_.sometimes(0.25)) return choices_.one_of(kSpecial);
    return static_cast<float>(-choices_.real(0.0, 12.0));
  }

  std::int32_t draw_id() {
    constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
    if (plain() || !choices_.sometimes(0.2)) {
      return static_cast<std::int32_t>(choices_.integer(0, 32000));
    }
    // Of every size: narrower integers, and floats, have lost something of them.
    const double id = std::exp2(choices_.real(14.0, 31.5));
    return id < kLargest ? static_cast<std::int32_t>(id) : kLargest;
  }

  /// With lists of differing lengths, which only the JSON form has, if asked for. The last of all
  /// is as long as the case, mostly.
  MessageSequence draw_sequence(Index entries, bool ragged) {
    MessageSequence sequence;
    const bool full = --left_ == 0 && (plain() || choices_.sometimes(0.7));
    const Index tokens = full ? tokens_ : choices_.integer(1, tokens_);
    sequence.tokens.resize(static_cast<std::size_t>(tokens));
    sequence.prompt = choices_.integer(1, 9);
    sequence.length = sequence.prompt + static_cast<Index>(sequence.tokens.size());
    for (MessageToken& token : sequence.tokens) {
      const bool shorter = ragged && choices_.sometimes(0.3);
      const Index count = shorter ? choices_.integer(0, entries) : entries;
      for (Index k = 0; k < count; ++k) {
        token.log_probs.push_back(draw_log_prob());
        token.ids.push_back(draw_id());
      }
      token.actual_log_prob = draw_log_prob();
      token.actual_id = draw_id();
    }
    return sequence;
  }

  std::string draw_response(Index sequences, Deviation deviation) {
    const bool binary = choices_.sometimes(binary_share(deviation));
    const bool fewer = !(plain() && left_ == sequences) && choices_.sometimes(0.2);
    const Index entries = fewer ? choices_.integer(1, support_) : support_;
    Message message{.sequences = {},
                    .with_actual_log_probs = actual_log_probs_,
                    .with_actual_ids = actual_ids_};
    for (Index s = 0; s < sequences; ++s) {
      message.sequences.push_back(draw_sequence(entries, !binary && !plain()));
    }
    deviate(message, deviation);
    constexpr float kBehind[] = {kMinusInfinity, 0.0F, -1.5F,
                                 std::numeric_limits<float>::quiet_NaN()};
    const Packing packing{.behind = plain() ? kMinusInfinity : choices_.one_of(kBehind),
                          .dropped_ids = deviation == Deviation::lists_differ ? 1u : 0u};
    Members members = binary ? binary_form(message, packing) : json_form(message);
    deviate(members, deviation);
    std::string text = text_of(members);
    if (choices_.sometimes(0.3)) text = spaced(text);
    deviate(text, deviation);
    return text;
  }

  /// What is wrong with what is said. Where there is nothing to spoil, nothing is.
  void deviate(Message& message, Deviation deviation) {
    if (deviation == Deviation::one_lacks_array) {
      const Index which = choices_.integer(0, 2);
      if (which != 1) message.with_actual_log_probs = !message.with_actual_log_probs;
      if (which != 0) message.with_actual_ids = !message.with_actual_ids;
      return;
    }
    if (message.sequences.empty()) return;
    MessageSequence& sequence = any_of(message.sequences, choices_);
    MessageToken& token = any_of(sequence.tokens, choices_);
    switch (deviation) {
      case Deviation::no_prompt:
        sequence.prompt = 0;
        sequence.length = static_cast<Index>(sequence.tokens.size());
        return;
      case Deviation::prompt_at_length:
        sequence.tokens.clear();
        sequence.length = std::max<Index>(sequence.prompt - choices_.integer(0, 2), 0);
        return;
      case Deviation::lists_differ:
        if (!token.ids.empty()) token.ids.pop_back();
        return;
      case Deviation::nan:
        return spoil(token, std::numeric_limits<float>::quiet_NaN());
      case Deviation::plus_infinity:
        return spoil(token, -kMinusInfinity);
      case Deviation::negative_id:
        if (!token.ids.empty()) token.ids.front() = -1;
        return;
      case Deviation::another_sequence:
        if (choices_.sometimes(0.5)) {
          message.sequences.pop_back();
        } else {
          message.sequences.push_back(MessageSequence(sequence));
        }
        return;
      default:
        return;
    }
  }

  void spoil(MessageToken& token, float value) {
    const bool actual = token.log_probs.empty() || choices_.sometimes(0.3);
    (actual ? token.actual_log_prob : any_of(token.log_probs, choices_)) = value;
  }

  /// What is wrong with how it is said.
  void deviate(Members& members, Deviation deviation) {
    std::vector<std::string*> base64, lists;
    for (auto& [key, value] : members) {
      if (key.ends_with("_b64")) base64.push_back(&value);
      if (key.ends_with("_lengths") || key == "shape") lists.push_back(&value);
    }
    switch (deviation) {
      case Deviation::cut_base64:
        if (!base64.empty()) cut(*any_of(base64, choices_));
        return;
      case Deviation::bad_base64:
        if (!base64.empty()) replace_one(*any_of(base64, choices_));
        return;
      case Deviation::wrong_count: {
        std::string& list = *any_of(lists, choices_);
        list.insert(list.size() - 1, list == "[]" ? "1" : ",1");
        return;
      }
      case Deviation::absurd_size: {
        constexpr const char* kSizes[] = {"2147483647", "4611686018427387904", "-1", "1e18",
                                          "1.5",        "99999999999999999999"};
        std::string& list = *any_of(lists, choices_);
        list.replace(1, std::min(list.find(','), list.size() - 1) - 1, choices_.one_of(kSizes));
        return;
      }
      case Deviation::key_missing:
        members.erase(members.begin() +
                      choices_.integer(0, static_cast<Index>(members.size()) - 1));
        return;
      case Deviation::key_unknown:
        any_of(members, choices_).first += 's';
        return;
      default:
        return;
    }
  }

  /// The text with its quotes loses up to two groups at its end.
  void cut(std::string& quoted) {
    const auto inside = static_cast<Index>(quoted.size()) - 2;
    if (inside == 0) return;
    const auto lost = static_cast<std::size_t>(choices_.integer(1, std::min<Index>(inside, 8)));
    quoted.erase(quoted.size() - 1 - lost, lost);
  }

  void replace_one(std::string& quoted) {
    if (quoted.size() < 3) return;
    constexpr char kStrangers[] = {'-', '_', ' ', '=', '*', '!', 'A', '/'};
    const Index at = choices_.integer(1, static_cast<Index>(quoted.size()) - 2);
    quoted[static_cast<std::size_t>(at)] = choices_.one_of(kStrangers);
  }

  /// What happens to it on the way.
  void deviate(std::string& text, Deviation deviation) {
    const auto last = static_cast<Index>(text.size()) - 1;
    if (deviation == Deviation::cut_message) {
      text.resize(static_cast<std::size_t>(choices_.integer(0, last)));
    } else if (deviation == Deviation::other_bytes) {
      for (Index left = choices_.integer(1, 4); left > 0; --left) {
        text[static_cast<std::size_t>(choices_.integer(0, last))] = draw_byte();
      }
    } else if (deviation == Deviation::noise) {
      text.resize(static_cast<std::size_t>(choices_.integer(0, 64)));
      for (char& byte : text) byte = draw_byte();
    }
  }

  char draw_byte() {
    return static_cast<char>(choices_.sometimes(0.5) ? choices_.integer(0, 255)
                                                     : choices_.integer('0', '9'));
  }

  Index tokens_, support_;
  Index left_ = 0;  ///< sequences that are not drawn yet
  Temper temper_;
  Choices& choices_;
  Deviation deviation_;
  bool actual_log_probs_, actual_ids_;
};

}  // namespace

Deviation pick_deviation(Temper temper, Choices& choices) {
  return pick(kDeviations, temper, choices);
}

void draw_payload(Columns columns, Shape& shape, Temper temper, Choices& choices) {
  const Index sequences = std::max<Index>(shape[Axis::sequences], 1);
  std::vector<std::vector<std::string>> rows;
  Index longest = 1;
  for (const Column& column : columns) {
    const Index responses = column.tensor->extents.front();
    rows.push_back(MessageDraw(shape, temper, choices).draw(sequences, responses));
    for (const std::string& row : rows.back()) {
      longest = std::max(longest, static_cast<Index>(row.size()));
    }
  }
  shape[Axis::bytes] = longest;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Tensor& tensor = *columns[i].tensor;
    tensor.extents = shape.of(columns[i].field->axes);
    tensor.bytes.assign(static_cast<std::size_t>(element_count(tensor.extents)), std::byte{' '});
    auto* row = reinterpret_cast<char*>(tensor.bytes.data());
    for (const std::string& text : rows[i]) {
      std::ranges::copy(text, row);
      row += longest;
    }
  }
}

}  // namespace lossgate::fuzz
