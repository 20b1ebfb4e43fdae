// SPDX-License-Identifier: Apache-2.0
#include "impl/external/named_argument.h"

#include <gtest/gtest.h>

namespace lossgate::impl {
namespace {

TEST(NamedArgument, IsTheFirstWordThatIsOne) {
  LossSignature loss;
  loss.fields.resize(2);
  loss.fields[0].name = "mask";
  loss.fields[1].name = "log_prob";
  loss.options = {{.name = "clip_low", .standard = 0.2}};
  Greeting greeting;
  greeting.arguments = {{"eps", "option:clip_low"},
                        {"lp", "field:log_prob as float"},
                        {"mode", "reduction"},
                        {"rest", "json:0"}};
  const std::pair<const char*, const char*> messages[] = {
      {"mask holds 2, not 0 or 1", "mask"},
      {"2 is no value of mask; log_prob is", "mask"},
      {"old_log_prob, masked, unmask", ""},
      {"eps must be positive", "clip_low"},
      {"'lp' has another shape", "log_prob"},
      {"unknown mode 'mean'", "reduction"},
      {"no reduction 'none'", "reduction"},
      {"rest is wrong", ""},
      {"", ""}};
  for (const auto& [message, argument] : messages) {
    EXPECT_EQ(named_argument(message, loss, greeting), argument) << message;
  }
}

}  // namespace
}  // namespace lossgate::impl
