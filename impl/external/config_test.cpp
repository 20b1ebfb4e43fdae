// SPDX-License-Identifier: Apache-2.0
#include "impl/external/config.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lossgate::impl {
namespace {

/// A loss with one option of every kind.
const LossSignature& signature() {
  static const LossSignature given = [] {
    LossSignature loss;
    loss.id = "toy";
    loss.forms = {"stable", "short"};
    loss.reductions = {Reduction::token_mean, Reduction::sum};
    loss.fields = {{"x", Role::differentiable, Quantity::log_prob, {Axis::sequences, Axis::tokens}},
                   {"mask", Role::mask, Quantity::mask, {Axis::sequences, Axis::tokens}},
                   {"w", Role::differentiable, Quantity::weight, {Axis::vocab, Axis::hidden}}};
    loss.fields[0].infinity = Infinity::legal;
    loss.options = {{.name = "clip", .standard = 0.2, .low = 0.0, .high = 1.0},
                    {.name = "limit", .standard = 20.0, .low = 1.0, .high = 80.0, .nullable = true},
                    {.name = "weighted", .kind = Option::Kind::flag, .standard = 0.0, .high = 1.0},
                    {.name = "level",
                     .kind = Option::Kind::choice,
                     .standard = "token",
                     .choices = {"token", "sequence"}}};
    loss.outputs = {{"per_token", {Axis::sequences, Axis::tokens}}};
    loss.mask = "mask";
    return loss;
  }();
  return given;
}

const LossSignature* find(std::string_view id) { return id == "toy" ? &signature() : nullptr; }

std::vector<Subject> parse(const std::string& text) {
  return parse_config(text, "lossgate.toml", "/somewhere", find);
}

std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const std::string kHead = "[[subject]]\nloss = 'toy'\nentry = 'py:mine.py:loss'\n";

TEST(Config, NeedsNoMoreThanALossAndAnEntry) {
  const Subject subject = parse(kHead).at(0);
  EXPECT_EQ(subject.name, "loss");
  EXPECT_EQ(subject.interpreter, "python3");
  EXPECT_EQ(subject.folder, "/somewhere/");
  EXPECT_EQ(subject.masked, Masked::finite);
  EXPECT_EQ(subject.dtypes, std::vector{Dtype::f32});
  EXPECT_FALSE(subject.contract.refuses_invalid);
  EXPECT_FALSE(subject.contract.repeated_tokens);
  EXPECT_TRUE(subject.contract.scattered_mask);
  EXPECT_TRUE(subject.contract.masked_outputs);
}

TEST(Config, NeedsTimeAndAThread) {
  for (const char* line : {"seconds = 0", "seconds = -1.5", "seconds = nan", "seconds = inf"}) {
    EXPECT_NE(complaint(kHead + line).find("'seconds' must be more than 0"), std::string::npos)
        << line;
  }
  for (const char* line : {"threads = 0", "threads = -1", "threads = 5000000000"}) {
    EXPECT_NE(complaint(kHead + line).find("'threads' must be from 1 to"), std::string::npos)
        << line;
  }
}

TEST(Config, TakesAFunctionOfASharedLibrary) {
  const Subject subject =
      parse("[[subject]]\nloss = 'toy'\nentry = 'so:build/libours.so:toy_loss'\n").at(0);
  EXPECT_EQ(subject.entry, "so:build/libours.so:toy_loss");
  EXPECT_EQ(subject.name, "toy_loss");
}

TEST(Config, MakesASubjectForEachDevice) {
  const auto subjects = parse(kHead + "name = 'ours'\ndevice = ['cuda', 'cpu']\nthreads = 2\n");
  ASSERT_EQ(subjects.size(), 2U);
  EXPECT_EQ(subjects[0].name, "ours@cuda");
  EXPECT_EQ(subjects[0].device, "cuda");
  EXPECT_EQ(subjects[1].name, "ours@cpu");
  EXPECT_EQ(subjects[1].device, "cpu");
  EXPECT_EQ(subjects[1].threads, 2);
}

TEST(Config, ReadsEverythingThatItMayHold) {
  const Subject subject = parse(kHead + R"(
name = "ours"
interpreter = "venv/bin/python"
folder = "losses"
path = ["vendor"]
environment = { MODE = "fast" }
device = "cuda"
threads = 2
reductions = ["sum"]
options = { clip = 0.5, limit = "none", weighted = true, level = "sequence" }
outputs = ["per_token"]
dtypes = ["bf16", "f64"]
wide = ["w"]
arguments = { lp = "field:x" }
micro_batches = "mean"
ranks = "token_weighted"
seconds = 2.5
megabytes = 900
most_cases = 30
[subject.arithmetic]
compute = "f32"
form = "short"
stages = { log_prob = "bf16", per_token = "stored" }
sum = "sequential"
matmul = { order = "blocked", width = 64, in = "f64" }
exp_slope = 1
subnormals = "flushed"
[subject.contract]
masked = { default = "any", x = "-inf", mask = 0 }
refuses_invalid = true
infinite_valid = true
repeated_tokens = true
scattered_mask = false
masked_outputs = false
uneven_parts = false
uneven_ranks = false
deterministic = false
empty = "nan"
empty_rows = "counted"
longest = { vocab = 9000 }
largest = { default = 1e6, w = 3 }
)")
                              .at(0);
  EXPECT_EQ(subject.name, "ours");
  EXPECT_EQ(subject.folder, "/somewhere/losses");
  EXPECT_EQ(subject.environment.at(0).second, "fast");
  EXPECT_EQ(subject.reductions, std::vector{Reduction::sum});
  const std::vector<std::pair<std::string, OptionValue>> options = {
      {"clip", 0.5}, {"level", "sequence"}, {"limit", None{}}, {"weighted", 1.0}};
  EXPECT_EQ(subject.options, options);
  EXPECT_EQ(subject.dtypes, (std::vector{Dtype::bf16, Dtype::f64}));
  EXPECT_EQ(subject.wide, std::vector<std::string>{"w"});
  EXPECT_EQ(subject.micro_batches, Combination::mean);
  EXPECT_EQ(subject.ranks, Combination::token_weighted);
  EXPECT_EQ(subject.megabytes, 900);
  EXPECT_EQ(subject.most_cases, 30);
  EXPECT_EQ(subject.longest, (std::vector{std::pair(Axis::vocab, std::int64_t{9000})}));
  EXPECT_EQ(subject.largest, (std::map<std::string, double>{{"w", 3.0}, {"x", 1e6}}));
  const DeclaredArithmetic arithmetic = {
      .compute = Dtype::f32,
      .form = "short",
      .stages = {{Stage::log_prob, Dtype::bf16}, {Stage::per_token, Format()}},
      .sum = DeclaredSum{SumOrder::sequential, 1.0, {}},
      .matmul = DeclaredSum{SumOrder::blocked, 64.0, Dtype::f64},
      .exp_slope = 1.0,
      .subnormals_flushed = true};
  EXPECT_EQ(subject.arithmetic, arithmetic);
  EXPECT_EQ(subject.masked, Masked::anything);
  EXPECT_EQ(subject.masked_of_field.at("x"), Masked::minus_infinity);
  EXPECT_EQ(subject.masked_of_field.at("mask"), Masked::zero);
  EXPECT_TRUE(subject.contract.refuses_invalid);
  EXPECT_TRUE(subject.contract.repeated_tokens);
  EXPECT_FALSE(subject.contract.scattered_mask);
  EXPECT_FALSE(subject.contract.masked_outputs);
  EXPECT_FALSE(subject.contract.uneven_parts);
  EXPECT_FALSE(subject.contract.uneven_ranks);
  EXPECT_EQ(subject.contract.empty, Empty::nan);
  EXPECT_EQ(subject.contract.empty_rows, EmptyRows::counted);
}

TEST(Config, NamesTheLossThatWasProbablyMeant) {
  try {
    parse_config("[[subject]]\nloss = 'tay'\nentry = 'py:a.py:f'\n", "lossgate.toml", "/", find,
                 {"toy", "grpo"});
    ADD_FAILURE() << "there is none";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("; did you mean 'toy'?")) << error.what();
  }
}

TEST(Config, SaysWhereAndWhatIsWrong) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"", "no [[subject]]"},
      {"[[subject]\n", "lossgate.toml:1:"},
      {"[subject]\nloss = 'toy'\nentry = 'py:a.py:f'\n",
       ": [subject] is one table; did you mean '[[subject]]'?"},
      {"[[subject]]\nentry = 'py:a.py:f'\n", "needs loss"},
      {"[[subject]]\nloss = 'toi'\nentry = 'py:a.py:f'\n",
       "lossgate.toml:2:8: there is no loss 'toi'"},
      {"[[subject]]\nloss = 'toy'\n", "needs entry"},
      {"[[subject]]\nloss = 'toy'\nentry = 'a.py'\n", "3:9: 'entry' must be py:FILE.py:FUNCTION"},
      {"[[subject]]\nloss = 'toy'\nentry = 'so:a.so'\n",
       "3:9: 'entry' must be py:FILE.py:FUNCTION"},
      {"[[subject]]\nloss = 'toy'\nentry = 'so:a.so:f'\nthreads = 2\n",
       "4:11: 'threads' is for a function in Python; a shared library is called as it is"},
      {kHead + "colour = 1\n", "4:1: [[subject]] has no key 'colour'; it may have name"},
      {kHead + "micro_batch = 'sum'\n", "; did you mean 'micro_batches'?"},
      {kHead + "micro_batches = 'sun'\n", "token_weighted; did you mean 'sum'?"},
      {kHead + "options = { clop = 1 }\n", "; did you mean 'clip'?"},
      {kHead + "reductions = ['mean']\n", "no reduction 'mean'; it has token_mean, sum"},
      {kHead + "options = { clop = 1 }\n", "no option 'clop'; it has clip, limit"},
      {kHead + "options = { clip = 1, limit = none }\n", "; a word stands in quotes: \"none\""},
      {kHead + "dtypes = [\"f32\", bf16]\n", "; a word stands in quotes: \"bf16\""},
      {kHead + "contract = { deterministic = False }\n", "; it is true or false here"},
      {kHead + "dtypes = []\n", "4:10: 'dtypes' names none"},
      {kHead + "options = { clip = 2 }\n", "'clip' must be a number from 0"},
      {kHead + "options = { clip = 'none' }\n", "'clip' cannot be none"},
      {kHead + "options = { clip = 'number' }\n", "'clip' must be a number from 0"},
      {kHead + "options = { weighted = 0.5 }\n", "'weighted' must be a whole number"},
      {kHead + "options = { level = 'word' }\n", "'level' must be one of token, sequence"},
      {kHead + "dtypes = ['i64']\n", "dtypes are f64, f32, f16, bf16"},
      {kHead + "dtypes = ['fp16']\n", "f16, bf16; did you mean 'f16'?"},
      {kHead + "dtypes = ['float32']\n", "f16, bf16; did you mean 'f32'?"},
      {kHead + "dtypes = ['torch.bfloat16']\n", "f16, bf16; did you mean 'bf16'?"},
      {kHead + "wide = ['y']\n", "has no numbers 'y'; it has x"},
      {kHead + "wide = ['w']\n", "'wide' needs 16 bits, which 'dtypes' lacks"},
      {kHead + "dtypes = ['f16']\nwide = ['x', 'mask', 'w']\n",
       "'wide' leaves no field in 16 bits"},
      {kHead + "micro_batches = 'average'\n", "must be one of none, sum, mean, token_weighted"},
      {kHead + "outputs = ['y']\n", "no output 'y'"},
      {kHead + "arithmetic = { form = 'long' }\n", "forms of toy are stable, short"},
      {kHead + "arithmetic = { compute = 'f8' }\n", "must be one of stored, f64, f32, f16, bf16"},
      {kHead + "arithmetic = { stages = { store = 'f16' } }\n",
       "a stage must be one of logits, log_prob, per_token, loss, gradient"},
      {kHead + "arithmetic = { sum = 'random' }\n",
       "the order of a sum must be one of pairwise, lanes, blocked, online, sequential"},
      {kHead + "arithmetic = { sum = { order = 'lanes', width = 0.5 } }\n",
       "'width' must be a number from 1 to 1048576"},
      {kHead + "arithmetic = { exp_slope = -1 }\n", "'exp_slope' must be a number from 0 to 100"},
      {kHead + "arithmetic = { subnormals = 'lost' }\n",
       "'subnormals' must be one of kept, flushed"},
      {kHead + "contract = { masked = { y = 0 } }\n", "no field 'y'"},
      {kHead + "contract = { masked = 'nan' }\n", "must be one of any, -inf, finite, ordinary, 0"},
      {kHead + "contract = { empty_rows = 'mean' }\n",
       "'empty_rows' must be one of skipped, counted"},
      {kHead + "axes = { support = 1 }\n",
       "4:10: toy has no axis 'support' that may be pinned; it has vocab, hidden"},
      {kHead + "axes = { tokens = 1 }\n", "no axis 'tokens' that may be pinned"},
      {kHead + "axes = { hidden = 0 }\n", "'hidden' must be a whole number from 1 to 4096"},
      {kHead + "axes = { hidden = 1.5 }\n", "'hidden' must be a whole number"},
      {kHead + "axes = { vocab = 1 }\n", "'vocab' must be a whole number from 2 to 4096"},
      {kHead + "axes = { vocab = 151936 }\n", "from 2 to 4096"},
      {kHead + "axes = { hidden = 64, vocab = 100 }\n",
       "from 2 to 4096, as the product of all axes"},
      {kHead + "[subject.contract]\nlongest = { support = 9 }\n",
       "5:13: toy has no axis 'support' that may be kept short; it has sequences, tokens, vocab, "
       "hidden"},
      {kHead + "[subject.contract]\nlongest = { tokens = 0 }\n",
       "'tokens' must be a whole number from 1"},
      {kHead + "[subject.contract]\nlongest = { vocab = 1 }\n",
       "'vocab' must be a whole number from 2"},
      {kHead + "axes = { vocab = 9 }\n[subject.contract]\nlongest = { vocab = 7 }\n",
       "'vocab' has one extent already, in 'axes'"},
      {kHead + "[subject.contract]\nlargest = 0\n", "5:11: 'largest' must be numbers above 0"},
      {kHead + "[subject.contract]\nlargest = inf\n", "'largest' must be numbers above 0"},
      {kHead + "[subject.contract]\nlargest = { mask = 1 }\n",
       "5:13: toy has no field 'mask' that holds numbers"},
      {kHead + "[subject.contract]\nlargest = { y = 1 }\n",
       "toy has no field 'y' that holds numbers"},
      {kHead + "contract = { autocast = true }\n", "4:25: 'autocast' would never be asked: an"},
      {kHead + "most_cases = -1\n", "4:14: 'most_cases' must not be negative"},
      {kHead + "path = 'vendor'\n", "must be a list of strings"},
      {kHead + kHead, "two subjects are called 'loss'"},
      {kHead + "name = 'a, b'\n", "4:8: 'name' must have no comma and no line break"},
  };
  for (const auto& [text, expected] : mistakes) {
    EXPECT_NE(complaint(text).find(expected), std::string::npos) << complaint(text) << "\n" << text;
  }
}

TEST(Narrowed, LeavesWhatTheSubjectComputes) {
  const Subject subject = parse(kHead +
                                "options = { clip = 0.5, limit = 'none' }\n"
                                "reductions = ['sum']\n"
                                "axes = { vocab = 7 }\n"
                                "contract = { empty_rows = 'counted', "
                                "masked = { x = '-inf', mask = 'ordinary' } }\n")
                              .at(0);
  const LossSignature loss = narrowed(signature(), subject);
  EXPECT_EQ(loss.find_option("clip")->low, 0.5);
  EXPECT_EQ(loss.find_option("clip")->high, 0.5);
  EXPECT_TRUE(std::holds_alternative<None>(loss.find_option("limit")->standard));
  EXPECT_EQ(loss.find_option("level")->choices.size(), 2u);
  EXPECT_EQ(loss.reductions, std::vector{Reduction::sum});
  EXPECT_TRUE(loss.outputs.empty());
  EXPECT_FALSE(loss.splittable);
  EXPECT_FALSE(loss.shardable);
  EXPECT_EQ(loss.find_field("x")->masked, Masked::minus_infinity);
  EXPECT_EQ(loss.find_field("mask")->masked, Masked::ordinary);
  EXPECT_EQ(loss.empty_rows, EmptyRows::counted);
  EXPECT_EQ(loss.pinned_extent(Axis::vocab), 7);
  EXPECT_EQ(loss.find_field("x")->infinity, Infinity::surfaces);
}

TEST(Narrowed, ReturnsTermsThatHearOfNoOtherSequence) {
  Subject subject;
  EXPECT_FALSE(narrowed(signature(), subject).returns_terms);
  subject.per_token = true;
  EXPECT_TRUE(narrowed(signature(), subject).returns_terms) << "whether it is split or not";
  LossSignature whole = signature();
  whole.splittable = false;
  EXPECT_FALSE(narrowed(whole, subject).returns_terms);
}

TEST(Narrowed, RunsInsideAutocastWhereThatIsPromisedAndMeansSomething) {
  Subject subject = parse(kHead).at(0);
  LossSignature loss = signature();
  loss.fields.pop_back();  // the output layer
  EXPECT_FALSE(narrowed(loss, subject).autocast) << "a file has to say it";
  subject.contract.autocast = true;
  EXPECT_TRUE(narrowed(loss, subject).autocast);
  EXPECT_FALSE(narrowed(signature(), subject).autocast) << "it is meant to be narrow";
  subject.dtypes = {Dtype::bf16};
  EXPECT_EQ(beyond_autocast(subject, loss), "it is asked of f32, which 'dtypes' leaves out");
  subject.entry = "so:libmine.so:loss";
  EXPECT_EQ(beyond_autocast(subject, loss), "it is for a function in Python");
}

TEST(Narrowed, IsNotSplitWhereGroupsAreKnownByTheirPlace) {
  LossSignature loss = signature();
  loss.fields.push_back({.name = "group", .role = Role::group, .axes = {Axis::sequences}});
  Subject subject;
  subject.micro_batches = Combination::sum;
  EXPECT_TRUE(narrowed(loss, subject).splittable);
  subject.contract.uneven_groups = false;
  EXPECT_FALSE(narrowed(loss, subject).splittable);
}

TEST(Narrowed, IsSplitIntoEvenPartsWhereItsTrainerHasNoOthers) {
  Subject subject;
  EXPECT_FALSE(narrowed(signature(), subject).even_parts);
  EXPECT_FALSE(narrowed(signature(), subject).even_ranks);
  subject.contract.uneven_parts = false;
  EXPECT_TRUE(narrowed(signature(), subject).even_parts);
  EXPECT_FALSE(narrowed(signature(), subject).even_ranks) << "another promise";
  subject.contract.uneven_ranks = false;
  EXPECT_TRUE(narrowed(signature(), subject).even_ranks);
}

TEST(Narrowed, HasNoGradientOfAFieldThatTheSubjectHasNoneOf) {
  Subject subject = parse(kHead).at(0);
  LossSignature loss = signature();
  subject.without = {"x"};
  EXPECT_FALSE(narrowed(loss, subject).find_field("x")->absent) << "it needs one";
  std::ranges::find(loss.fields, "x", &Field::name)->optional = true;
  const LossSignature without = narrowed(loss, subject);
  EXPECT_TRUE(without.find_field("x")->absent);
  EXPECT_EQ(without.find_field("x")->role, Role::constant);
}

TEST(Narrowed, HasOneNumberForEachSequenceOfWhatIsHandedOverSo) {
  Subject subject = parse(kHead).at(0);
  const auto once = [&] {
    return narrowed(signature(), subject).find_field("x")->one_per_sequence;
  };
  EXPECT_FALSE(once());
  for (const char* words : {"field:x as rows", "field:x as float as expanded"}) {
    subject.arguments = {{"xs", words}};
    EXPECT_TRUE(once()) << words;
    EXPECT_FALSE(narrowed(signature(), subject).find_field("mask")->one_per_sequence) << words;
  }
}

TEST(Narrowed, NamesNoTokenTwiceAndHasNoInfinityWhereItsContractSaysNothingOfThem) {
  LossSignature loss = signature();
  loss.fields.push_back({.name = "token",
                         .quantity = Quantity::label,
                         .axes = {Axis::sequences, Axis::tokens, Axis::support},
                         .dtypes = {Dtype::i64}});
  loss.fields[0].infinity = Infinity::refused;
  loss.fields[0].infinite_where = std::pair("clip", 0.0);
  Subject subject = parse(kHead).at(0);
  EXPECT_TRUE(narrowed(loss, subject).find_field("token")->distinct);
  EXPECT_FALSE(narrowed(loss, subject).fields[0].distinct);
  EXPECT_FALSE(narrowed(loss, subject).fields[0].infinite_where);
  EXPECT_EQ(narrowed(loss, subject).fields[0].infinity, Infinity::refused);
  subject.contract.repeated_tokens = true;
  subject.contract.infinite_valid = true;
  EXPECT_FALSE(narrowed(loss, subject).find_field("token")->distinct);
  EXPECT_TRUE(narrowed(loss, subject).fields[0].infinite_where);
}

TEST(Narrowed, KeepsAnOptionFromBeingNone) {
  Subject subject = parse(kHead + "options = { limit = 'number' }\n").at(0);
  LossSignature loss = signature();
  EXPECT_FALSE(narrowed(loss, subject).find_option("limit")->nullable);
  EXPECT_EQ(narrowed(loss, subject).find_option("limit")->standard, OptionValue(20.0));
  EXPECT_EQ(narrowed(loss, subject).find_option("limit")->high, 80.0);
  loss.options[1].standard = None{};
  EXPECT_EQ(narrowed(loss, subject).find_option("limit")->standard, OptionValue(1.0));
}

TEST(Narrowed, LetsAnOptionFollowAnotherWhereBothReach) {
  Subject subject = parse(kHead).at(0);
  LossSignature loss = signature();
  loss.options.push_back({.name = "above", .standard = 0.4, .low = 0.1, .high = 4.0});
  subject.tied = {{"above", "clip"}};
  const LossSignature tied = narrowed(loss, subject);
  for (const char* name : {"clip", "above"}) {
    const Option& option = *tied.find_option(name);
    EXPECT_EQ(option.low, 0.1) << name;
    EXPECT_EQ(option.high, 1.0) << name;
    EXPECT_EQ(option.standard, OptionValue(0.2)) << name;
  }
  EXPECT_EQ(tied.find_option("above")->follows, "clip");
  EXPECT_EQ(tied.find_option("clip")->follows, "");
  subject.options = {{"clip", 0.5}};
  const Option& pinned = *narrowed(loss, subject).find_option("above");
  EXPECT_EQ(pinned.low, 0.5);
  EXPECT_EQ(pinned.high, 0.5);
}

}  // namespace
}  // namespace lossgate::impl
