// SPDX-License-Identifier: Apache-2.0
#include "impl/external/named_argument.h"

#include <gtest/gtest.h>

namespace lossgate::impl {
namespace {

TEST(NamedArguments, AreAllWordsThatAreOneInTheirOrder) {
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
  using Names = std::vector<std::string>;
  const std::pair<const char*, Names> messages[] = {
      {"mask holds 2, not 0 or 1", {"mask"}},
      {"2 is no value of mask; log_prob is", {"mask", "log_prob"}},
      {"lp and mask differ, log_prob is longer", {"log_prob", "mask"}},
      {"mask and log_prob differ: lp is longer than mask", {"mask", "log_prob"}},
      {"old_log_prob, masked, unmask", {}},
      {"eps must be positive", {"clip_low"}},
      {"'lp' has another shape", {"log_prob"}},
      {"unknown mode 'mean'", {"reduction"}},
      {"no reduction 'none'", {"reduction"}},
      {"rest is wrong", {}},
      {"", {}}};
  for (const auto& [message, arguments] : messages) {
    EXPECT_EQ(named_arguments(message, loss, greeting), arguments) << message;
  }
}

}  // namespace
}  // namespace lossgate::impl
