// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "corpora/case_check.h"
#include "corpora/given_case.h"

namespace lossgate::corpora {
namespace {

std::int64_t below(std::int64_t end, Random& random) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

bool heads(Random& random) { return below(2, random) == 1; }

Option random_option(int number, Random& random) {
  Option option{.name = "option_" + std::to_string(number),
                .kind = static_cast<Option::Kind>(below(4, random)),
                .standard = 1.0,
                .low = -100.0 * static_cast<double>(below(2, random)),
                .high = 1e6,
                .nullable = heads(random)};
  if (option.kind == Option::Kind::choice) {
    option.choices = {"k3", "k1", "straight_through"};
    option.standard = "k1";
  }
  return option;
}

OptionValue random_value(const Option& option, Random& random) {
  if (option.nullable && below(4, random) == 0) return None{};
  switch (option.kind) {
    case Option::Kind::choice:
      return option.choices[static_cast<std::size_t>(below(3, random))];
    case Option::Kind::flag:
      return static_cast<double>(below(2, random));
    case Option::Kind::integer:
      return option.low + static_cast<double>(below(1000, random));
    case Option::Kind::real:
      break;
  }
  const double part = static_cast<double>(random() >> 11) * 0x1p-53;
  return option.low + (option.high - option.low) * part * part * part;
}

std::string random_prose(Random& random) {
  constexpr const char* kPieces[] = {
      "word",        " ",  "  ",   "\n", "# no comment",     "key: value", "\xe2\x88\x9e",
      "field x f32", "\t", "\xff", "\r", "lossgate-case: 1", ".",          "-"};
  std::string text;
  for (std::int64_t left = below(heads(random) ? 6 : 80, random); left > 0; --left) {
    text += kPieces[below(std::size(kPieces), random)];
    if (below(3, random) > 0) text += ' ';
  }
  return text;
}

Split random_split(std::int64_t sequences, Random& random) {
  Split split;
  if (sequences < 0 || heads(random)) return split;
  split.world = 1 + static_cast<int>(below(4, random));
  split.parts.resize(static_cast<std::size_t>(1 + below(4, random)));
  for (Split::Part& part : split.parts) part.rank = static_cast<int>(below(split.world, random));
  std::vector<std::int64_t> order;
  for (std::int64_t s = 0; s < sequences; ++s) order.push_back(s);
  std::ranges::shuffle(order, random);
  for (std::int64_t s : order) {
    split.parts[random() % split.parts.size()].sequences.push_back(s);
  }
  return split;
}

/// Raw bits, with the values that a text must take care of made frequent.
Tensor random_tensor(Dtype dtype, Extents extents, Random& random) {
  constexpr double kPlain[] = {0.0, -0.0, 1.0, -1.5, 0.1, 1e4, 65504.0, -100.0};
  constexpr double kSpecial[] = {HUGE_VAL, -HUGE_VAL, NAN, 1e-7, 6e-8, 3e38, 1e-40, 1e300};
  Tensor tensor = Tensor::zeros(dtype, std::move(extents));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    std::byte* const bits = tensor.element(i);
    const std::int64_t kind = below(3, random);
    if (dtype == Dtype::boolean || !is_float(dtype) || kind == 0) {
      store_bits(dtype, dtype == Dtype::boolean ? random() & 1 : random(), bits);
    } else {
      tensor.set(i, (kind == 1 ? kPlain : kSpecial)[below(8, random)]);
    }
  }
  return tensor;
}

}  // namespace

LossSignature example_signature() {
  const auto real = [](std::string name, OptionValue standard, double low, double high) {
    return Option{
        .name = std::move(name), .standard = std::move(standard), .low = low, .high = high};
  };
  const auto per_token = [](std::string name, Role role, std::vector<Dtype> dtypes) {
    return Field{.name = std::move(name),
                 .role = role,
                 .axes = {Axis::sequences, Axis::tokens},
                 .dtypes = std::move(dtypes)};
  };
  LossSignature signature;
  signature.id = "example";
  signature.options = {real("clip_low", 0.2, 0.0, 0.9), real("dual_clip", None{}, 1.5, 20.0),
                       real("level", "token", 0.0, 0.0), real("weighted", 0.0, 0.0, 1.0),
                       real("max_length", 16.0, 1.0, 4096.0)};
  signature.options[1].nullable = true;
  signature.options[2].kind = Option::Kind::choice;
  signature.options[2].choices = {"token", "sequence"};
  signature.options[3].kind = Option::Kind::flag;
  signature.options[4].kind = Option::Kind::integer;
  signature.fields = {per_token("log_prob", Role::differentiable, {}),
                      per_token("old_log_prob", Role::constant, {}),
                      per_token("label", Role::label, {Dtype::i64}),
                      per_token("mask", Role::mask, {Dtype::u8, Dtype::boolean})};
  signature.outputs = {{.name = "entropy", .axes = {Axis::sequences, Axis::support}}};
  signature.reductions = {Reduction::sum, Reduction::token_mean};
  signature.mask = "mask";
  signature.ignore_label = "label";
  return signature;
}

Case example_case() {
  Case c;
  c.spec = standard_spec(example_signature());
  c.spec.reduction = Reduction::token_mean;
  c.shape[Axis::sequences] = 2;
  c.shape[Axis::tokens] = 3;
  const auto fill = [](Dtype dtype, std::initializer_list<double> values) {
    Tensor tensor = Tensor::zeros(dtype, {2, 3});
    std::int64_t i = 0;
    for (double value : values) tensor.set(i++, value);
    return tensor;
  };
  const double inf = HUGE_VAL;
  c.batch.fields = {{"log_prob", fill(Dtype::f32, {-0.1, -2.5, -inf, -0.0, -1e-9, 0.25})},
                    {"old_log_prob", fill(Dtype::f32, {-0.1, -88.75, NAN, NAN, -1e30, 0.25})},
                    {"label", fill(Dtype::i64, {11, 7, -100, 3, 0, -100})},
                    {"mask", fill(Dtype::u8, {1, 1, 0, 1, 1, 0})}};
  store_bits(Dtype::f32, 0x7fc01234, c.batch.at("old_log_prob").element(3));
  c.split = {.world = 2,
             .parts = {{.rank = 0, .sequences = {1}},
                       {.rank = 1, .sequences = {}},
                       {.rank = 0, .sequences = {0}}}};
  c.provenance = {
      .title = "A padded log-prob is minus infinity",
      .found_by = "hand",
      .story =
          "The teacher's log-probs arrive ragged and are padded with -inf. The divergence "
          "was computed first and masked after.\nNothing of that kind may reach a valid "
          "position.",
      .expect = "implementation:finite_backward"};
  return c;
}

LossSignature random_signature(Random& random) {
  LossSignature signature;
  signature.id = "loss_" + std::to_string(below(1000, random));
  for (int i = 0, n = static_cast<int>(below(5, random)); i < n; ++i) {
    signature.options.push_back(random_option(i, random));
  }
  for (int i = 0, n = static_cast<int>(1 + below(5, random)); i < n; ++i) {
    Field field;
    field.name = "field_" + std::to_string(i);
    if (heads(random)) field.dtypes = {kAllDtypes[below(8, random)], kAllDtypes[below(8, random)]};
    std::vector<Axis> axes(std::begin(kAllAxes), std::end(kAllAxes));
    std::ranges::shuffle(axes, random);
    axes.resize(static_cast<std::size_t>(below(5, random)));
    field.axes = std::move(axes);
    signature.fields.push_back(std::move(field));
  }
  if (heads(random)) signature.reductions = {Reduction::token_mean, Reduction::sum};
  return signature;
}

Case random_case(const LossSignature& signature, Random& random) {
  Case c;
  c.spec = standard_spec(signature);
  for (const Option& option : signature.options) {
    c.spec.set(option.name, random_value(option, random));
  }
  if (!signature.reductions.empty()) c.spec.reduction = signature.reductions[random() % 2];
  for (const Field& field : signature.fields) {
    for (Axis axis : field.axes) {
      if (c.shape[axis] == -1) c.shape[axis] = below(12, random) / 3;
    }
  }
  const Dtype shared = kAllDtypes[below(4, random)];
  for (const Field& field : signature.fields) {
    const Dtype dtype =
        field.dtypes.empty() ? shared : field.dtypes[random() % field.dtypes.size()];
    c.batch.fields.emplace_back(field.name, random_tensor(dtype, c.shape.of(field.axes), random));
  }
  c.split = random_split(c.shape[Axis::sequences], random);
  c.layout = kAllLayouts[below(std::size(kAllLayouts), random)];
  do {
    c.upstream = random_tensor(Dtype::f64, {}, random).at(0);
  } while (!std::isfinite(c.upstream));
  c.provenance = {.title = random_prose(random),
                  .found_by = random_prose(random),
                  .story = random_prose(random),
                  .expect = random_prose(random)};
  return c;
}

Lookup only(const LossSignature& signature) {
  return [&signature](std::string_view id) { return id == signature.id ? &signature : nullptr; };
}

TEST(RandomCase, FitsItsSignature) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const LossSignature signature = random_signature(random);
    EXPECT_NO_THROW(check_case(random_case(signature, random), signature, "drawn"));
  }
}

TEST(RandomCase, TheExampleFitsItsSignature) {
  EXPECT_NO_THROW(check_case(example_case(), example_signature(), "example"));
}

}  // namespace lossgate::corpora
