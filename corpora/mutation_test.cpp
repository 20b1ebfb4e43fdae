// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <span>

#include "corpora/given_case.h"
#include "corpora/safetensors.h"
#include "corpora/text_codec.h"

namespace lossgate::corpora {
namespace {

/// What happened to altered files.
struct Counts {
  int read = 0;
  int refused = 0;
};

/// Cuts, flips, copies and removes, a few times: what disks, mails and fuzzers do.
std::string altered(std::string text, Random& random) {
  constexpr std::string_view kNasty[] = {"-",
                                         "99999999999999999999",
                                         "nan(0x",
                                         "\n",
                                         " ",
                                         "{",
                                         "}",
                                         "\"",
                                         "field ",
                                         ":",
                                         "\xff",
                                         "-1",
                                         "1e999",
                                         "#",
                                         std::string_view("\0", 1)};
  for (std::uint64_t left = 1 + random() % 3; left > 0 && !text.empty(); --left) {
    const std::size_t at = random() % text.size();
    const std::size_t length = std::min<std::size_t>(random() % 40, text.size() - at);
    switch (random() % 6) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(random() % text.size(), text.substr(at, length));
        break;
      case 4:
        text.insert(at, kNasty[random() % std::size(kNasty)]);
        break;
      default:
        text[at] = static_cast<char>(random());
        break;
    }
  }
  return text;
}

/// Anything but a case or a FormatError fails the test.
template <class Decode>
void count(Counts& counts, Decode decode) {
  try {
    decode();
    ++counts.read;
  } catch (const FormatError& error) {
    ++counts.refused;
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    EXPECT_TRUE(std::string_view(error.what()).starts_with("altered"));
  }
}

TEST(AlteredText, IsReadOrRefused) {
  Random random(1);
  Counts counts;
  for (int i = 0; i < 5'000; ++i) {
    const LossSignature signature = random_signature(random);
    const std::string text = altered(encode(random_case(signature, random), signature), random);
    count(counts, [&] {
      const Case c = decode(text, "altered", only(signature));
      const std::string canonical = encode(c, signature);
      EXPECT_EQ(encode(decode(canonical, "again", only(signature)), signature), canonical);
    });
  }
  EXPECT_GT(counts.read, 100);
  EXPECT_GT(counts.refused, 2'500);
}

TEST(AlteredText, IsRefusedWhereverItIsCutOff) {
  const LossSignature signature = example_signature();
  const std::string text = encode(example_case(), signature);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(decode(std::string_view(text).substr(0, size), "cut", only(signature)),
                 FormatError);
  }
}

TEST(AlteredSafetensors, AreReadOrRefused) {
  Random random(2);
  Counts counts;
  for (int i = 0; i < 5'000; ++i) {
    const LossSignature signature = random_signature(random);
    const std::vector<std::byte> bytes = encode_safetensors(random_case(signature, random));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string changed = altered(text, random);
    count(counts, [&] {
      const Case c =
          decode_safetensors(std::as_bytes(std::span(changed)), "altered", only(signature));
      EXPECT_NO_THROW(encode(c, signature));
    });
  }
  EXPECT_GT(counts.read, 100);
  EXPECT_GT(counts.refused, 2'500);
}

TEST(AlteredSafetensors, AreRefusedWhereverTheyAreCutOff) {
  const LossSignature signature = example_signature();
  const std::vector<std::byte> bytes = encode_safetensors(example_case());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode_safetensors(std::span(bytes).first(size), "cut", only(signature)),
                 FormatError);
  }
}

}  // namespace
}  // namespace lossgate::corpora
