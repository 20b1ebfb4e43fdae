// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <source_location>

#include "corpora/given_case.h"
#include "corpora/text_codec.h"

namespace lossgate::corpora {
namespace {

/// The message for the example with one piece of its text replaced.
std::string message_for(std::string_view piece, std::string_view replacement) {
  const LossSignature signature = example_signature();
  std::string text = encode(example_case(), signature);
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), replacement);
  try {
    decode(text, "bad.case", only(signature));
  } catch (const FormatError& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    return error.what();
  }
  return "no error";
}

void expect_says(const std::string& message, std::string_view start, std::string_view part,
                 std::source_location place = std::source_location::current()) {
  const bool says = message.starts_with(start) && message.find(part) != std::string::npos;
  if (says) return;
  ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line())) << message;
}

std::string decode_error(std::string_view text) {
  const LossSignature signature = example_signature();
  try {
    decode(text, "bad.case", only(signature));
  } catch (const FormatError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BadText, IsNoText) {
  expect_says(decode_error(""), "bad.case: ", "empty file");
  expect_says(decode_error("\n\n"), "bad.case:1: lossgate-case: ", "to start with");
  expect_says(decode_error("lossgate-case: 1"), "bad.case:1: ", "cut off");
  expect_says(decode_error("lossgate-case: 2\n"), "bad.case:1: lossgate-case: ", "to start with");
  expect_says(decode_error("loss: example\n"), "bad.case:1: lossgate-case: ", "to start with");
  expect_says(decode_error("lossgate-case: 1\ntitle: \xc3\x28\n"), "bad.case:2: ", "UTF-8");
  expect_says(decode_error("lossgate-case: 1\n\ntitle: \x01\n"), "bad.case:3: ", "control");
  expect_says(decode_error("\xef\xbb\xbflossgate-case: 1\n"), "bad.case:1: ", "byte order mark");
  expect_says(decode_error("  lossgate-case: 1\n"), "bad.case:1: ", "key: value");
}

TEST(BadText, HasAWrongKey) {
  expect_says(message_for("layout:", "lay_out:"), "bad.case:11: 'lay_out': ", "known key");
  expect_says(message_for("option.level:", "option.lebel:"),
              "bad.case:6: 'option.lebel': ", "clip_low, dual_clip, level, weighted, max_length");
  expect_says(message_for("layout:", "upstream:"), "bad.case:12: 'upstream': ", "first on line 11");
  expect_says(message_for("upstream: 1\n", ""), "bad.case: upstream: ", "no such key");
  expect_says(message_for("option.dual_clip: none\n", ""),
              "bad.case: option.dual_clip: ", "none is the default");
  expect_says(message_for("layout: contiguous", "layout contiguous"),
              "bad.case:11: ", "key: value");
  expect_says(message_for("layout: ", "layout:"), "bad.case:11: ", "key: value");
  expect_says(message_for("layout: ", ": "), "bad.case:11: ", "key: value");
  expect_says(message_for("layout: ", " layout: "), "bad.case:11: ", "key: value");
}

TEST(BadText, HasAWrongSpec) {
  expect_says(message_for("loss: example", "loss: exemple"), "bad.case:2: loss: ", "'exemple'");
  expect_says(message_for("token_mean", "mean"), "bad.case:3: reduction: ", "sum, token_mean");
  expect_says(message_for("reduction: token_mean", "reduction: sequence_mean"),
              "bad.case:3: reduction: ", "sum, token_mean");
  for (const char* value : {"0.91", "-0.1", "nan", "inf", "none", "", "0,2", "0x1p-3", "+0.2"}) {
    expect_says(message_for("clip_low: 0.2", "clip_low: " + std::string(value)),
                "bad.case:4: option.clip_low: ", "a number from 0 to 0.9, found");
  }
  expect_says(message_for("dual_clip: none", "dual_clip: 1"),
              "bad.case:5: option.dual_clip: ", "from 1.5 to 20 or none");
  expect_says(message_for("level: token", "level: tokens"),
              "bad.case:6: option.level: ", "one of token, sequence");
  expect_says(message_for("weighted: 0", "weighted: 2"), "bad.case:7: option.weighted: ", "0 or 1");
  expect_says(message_for("max_length: 16", "max_length: 16.5"),
              "bad.case:8: option.max_length: ", "an integer from 1 to 4096");
  expect_says(message_for("contiguous", "strided"), "bad.case:11: layout: ", "padded_rows");
  expect_says(message_for("upstream: 1", "upstream: one"), "bad.case:12: upstream: ", "f64");
  for (const char* number : {"upstream: inf", "upstream: nan"}) {
    expect_says(message_for("upstream: 1", number), "bad.case:12: upstream: ", "a finite number");
  }
}

TEST(BadText, HasAWrongShape) {
  const auto shape = [](std::string_view value) {
    return message_for("shape: sequences 2, tokens 3", "shape: " + std::string(value));
  };
  const std::string place = "bad.case:9: shape: ";
  expect_says(shape("sequences 2"), place, "the axis tokens");
  expect_says(shape("sequences 2, tokens 3, vocab 7"), place, "sequences, tokens, support");
  expect_says(shape("sequences 2, tokens 3, tokens 3"), place, "only once");
  expect_says(shape("sequences 2, tokens -3"), place, "'tokens -3'");
  expect_says(shape("sequences 2, tokens 134217729"), place, "from 0 to 134217728");
  expect_says(shape("sequences 2, tokens 99999999999999999999999"), place, "from 0 to");
  expect_says(shape("sequences 2, tokens"), place, "'tokens'");
  expect_says(shape("sequences 2 tokens 3"), place, "found");
  expect_says(shape("sequences 2, tokens 3,"), place, "after the last comma");
  expect_says(shape(""), place, "or scalar");
  expect_says(shape("scalar"), place, "the axis sequences");
}

TEST(BadText, ClaimsMoreThanItHolds) {
  const auto shape = [](std::string_view value) {
    return message_for("world 2; rank 0: 1; rank 1:; rank 0: 0",
                       "whole\nshape: " + std::string(value));
  };
  const LossSignature signature = example_signature();
  std::string text = encode(example_case(), signature);
  const auto replace = [&](std::string_view piece, std::string_view by) {
    text.replace(text.find(piece), piece.size(), by);
  };
  replace("world 2; rank 0: 1; rank 1:; rank 0: 0", "whole");
  replace("sequences 2, tokens 3", "sequences 134217728, tokens 134217728");
  expect_says(decode_error(text), "bad.case:22: field log_prob: ", "this file can hold");
  const auto replace_shape = [&](std::string_view by) {
    replace("sequences 134217728, tokens 134217728", by);
    return decode_error(text);
  };
  expect_says(replace_shape("sequences 134217728, tokens 0"), "bad.case:9: shape: ",
              "at most 65536 sequences where no field has an element, found 134217728");
  expect_says(shape("sequences 1, tokens 1"), "bad.case:11: 'shape': ", "only once");
}

TEST(BadText, HasAWrongSplit) {
  const auto split = [](std::string_view value) {
    return message_for("split: world 2; rank 0: 1; rank 1:; rank 0: 0",
                       "split: " + std::string(value));
  };
  const std::string place = "bad.case:10: split: ";
  expect_says(split("half"), place, "whole, or world N");
  expect_says(split(""), place, "whole, or world N");
  expect_says(split("world 0; rank 0: 0 1"), place, "from 1 to 65536");
  expect_says(split("world 99999999999; rank 0: 0 1"), place, "from 1 to 65536");
  expect_says(split("world 2; rank 2: 0 1"), place, "R below 2");
  expect_says(split("world 2; rank -1: 0 1"), place, "R below 2");
  expect_says(split("world 2; rank 0: 0 2"), place, "below 2");
  expect_says(split("world 2; rank 0: 0 -1"), place, "below 2");
  expect_says(split("world 2; rank 0: 0; rank 1: 0 1"), place, "one part only");
  expect_says(split("world 2; rank 0: 1"), place, "sequence 0");
  expect_says(split("world 2; rank 0 0 1"), place, "'rank 0 0 1'");
  expect_says(split("world 2; 0 1"), place, "'0 1'");
}

TEST(BadText, HasAWrongField) {
  expect_says(message_for("field mask u8", "field musk u8"),
              "bad.case:34: field 'musk': ", "the loss example");
  expect_says(message_for("field mask u8", "field mask f32"),
              "bad.case:34: field mask: ", "u8, bool");
  expect_says(message_for("field mask u8", "field mask u9"),
              "bad.case:34: field mask: ", "DTYPE being");
  expect_says(message_for("field mask u8", "field mask"),
              "bad.case:34: field mask: ", "DTYPE being");
  expect_says(message_for("field mask u8", "field"), "bad.case:34: field ", "the loss example");
  expect_says(message_for("field mask u8", "field mask u8 u8"),
              "bad.case:34: field mask: ", "DTYPE being");
  expect_says(message_for("field mask u8", "field label i64"),
              "bad.case:34: field label: ", "once");
  expect_says(message_for("field old_log_prob f32", "field old_log_prob f64"),
              "bad.case:26: field old_log_prob: ", "f32 as the fields before it");
  expect_says(message_for("field log_prob f32", "field log_prob i32"),
              "bad.case:22: field log_prob: ", "f64, f32, f16 or bf16");
  expect_says(message_for("\nfield mask u8\n  1 1 0\n  1 1 0\n", ""),
              "bad.case: field mask: ", "found none");
}

TEST(BadText, HasWrongRows) {
  expect_says(message_for("  11 7 -100", "  11 7"),
              "bad.case:31: field label: ", "3 values in a row, found 2");
  expect_says(message_for("  11 7 -100", "  11 7 -100 4"), "bad.case:31: field label: ", "found 4");
  expect_says(message_for("  11 7 -100\n", ""), "bad.case:30: field label: ", "2 rows");
  expect_says(message_for("  11 7 -100\n", "  11 7 -100\n  1 2 3\n"),
              "bad.case:33: field label: ", "no more rows");
  expect_says(message_for("  3 0 -100\n", "  3 0 -100\ntitle: late\n"),
              "bad.case:33: field label: ", "no more rows");
}

TEST(BadText, HasValuesThatTheDtypeCannotHold) {
  const auto label = [](std::string_view value) {
    return message_for("  11 7 -100", "  11 " + std::string(value) + " -100");
  };
  for (const char* value :
       {"7.5", "7.0", "1e3", "9223372036854775808", "nan", "-0", "+7", "0x7", "x"}) {
    expect_says(label(value), "bad.case:31: field label: ", "(value 2 of the row)");
  }
  for (const char* value : {"-1", "256", "0.5"}) {
    expect_says(message_for("  1 1 0", "  1 " + std::string(value) + " 0"),
                "bad.case:35: field mask: ", "an integer from 0 to 255 (u8), found");
  }
  for (const char* value :
       {"1e39", "1e-50", "1e999", "1e-999", "infinity", "+1", "1e", "1.5.2", "--1", "nan()",
        "nan(0x7fc0123)", "nan(0x7f800000)", "nan(0x7fc0123g)", "NaN", "1_0"}) {
    expect_says(
        message_for("-0.1 -2.5", "-0.1 " + std::string(value)),
        "bad.case:23: field log_prob: ", "range of f32, inf, -inf, nan or nan(0x........), found");
  }
}

TEST(BadText, MessagesAreOneShortLineWhateverTheFileSays) {
  const std::string message =
      message_for("layout: contiguous", "layout: " + std::string(5000, 'x'));
  EXPECT_LT(message.size(), 200u);
  const std::string key = message_for("layout: contiguous", std::string(5000, 'x') + ": 1");
  EXPECT_LT(key.size(), 400u);
}

}  // namespace
}  // namespace lossgate::corpora
