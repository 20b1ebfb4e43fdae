// SPDX-License-Identifier: Apache-2.0
#include "ci/ways_to_ask.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ci/candidates.h"
#include "properties/case_facts.h"

namespace lossgate::ci {
namespace {

bool refuses(const Interview& interview) {
  return !interview.refusal.empty() || interview.answered == 0;
}

/// As a function takes its arguments that moves labels by one position itself: every field along
/// positions has one more. None where these are not labels and rows of numbers, or it lacks some.
std::vector<std::pair<std::string, std::string>> shifted(const Interview& interview) {
  std::vector<std::pair<std::string, std::string>> arguments;
  const LossSignature& loss = interview.loss->signature;
  if (loss.ignore_label.empty() || loss.reductions.empty()) return arguments;
  for (const Field& field : loss.fields) {
    if (!has_positions(field.axes)) continue;
    const std::size_t before = arguments.size();
    for (const auto& [parameter, source] : interview.greeting.arguments) {
      if (source != "field:" + field.name) continue;
      arguments.emplace_back(parameter, source + " as shifted");
    }
    const bool row = field.axes.size() > 2 || field.role == Role::label;
    if (arguments.size() == before || !row) return {};
  }
  return arguments;
}

/// The ways of a helper that returns outputs, which weigh in another function's loss: all of them
/// or one, and its labels as they are or as an index that never stands for none.
std::vector<impl::Subject> returning_outputs(const Interview& interview) {
  const LossSignature& loss = interview.loss->signature;
  std::vector<std::string> weighed;
  for (const Field& field : loss.fields) {
    if (const OutputField* output = impl::weighed_output(loss, field)) {
      weighed.push_back(output->name);
    }
  }
  std::vector<std::vector<std::string>> lists;
  if (weighed.size() > 1) lists.push_back(weighed);
  for (const std::string& output : weighed) lists.push_back({output});
  std::vector<impl::Subject> ways;
  for (const std::vector<std::string>& outputs : lists) {
    impl::Subject way = interview.subject;
    way.weighed_outputs = true;
    way.outputs = outputs;
    ways.push_back(way);
    for (const auto& [parameter, source] : interview.greeting.arguments) {
      if (source == "field:" + loss.ignore_label)
        way.arguments.emplace_back(parameter, source + " as ids");
    }
    ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace

std::vector<impl::Subject> other_ways(const Interview& interview) {
  std::vector<impl::Subject> ways;
  const LossSignature& loss = interview.loss->signature;
  const bool returns_loss = !interview.subject.per_token && !interview.subject.weighed_outputs;
  if (interview.answered == 0 && returns_loss) ways = returning_outputs(interview);
  const auto add = [&](auto change) { change(ways.emplace_back(interview.subject)); };
  if (interview.answered == 0 && returns_loss) {
    add([](impl::Subject& subject) { subject.per_token = true; });
  }
  if (const auto arguments = shifted(interview); !arguments.empty()) {
    add([&](impl::Subject& subject) {
      subject.arguments.insert(subject.arguments.end(), arguments.begin(), arguments.end());
    });
  }
  for (const auto& [parameter, source] : interview.greeting.arguments) {
    const auto convert = [&](const std::string& to) {
      add([&](impl::Subject& subject) { subject.arguments.emplace_back(parameter, source + to); });
    };
    if (!source.starts_with("field:") || source.find(" as ") != std::string::npos) continue;
    const Field* field = loss.find_field(source.substr(6));
    if (field->name == loss.advantage) {
      convert(" as rows");
      if (interview.answered > 0) convert(std::string(" as ") + impl::kExpanded);
    }
    if (field->role == Role::mask && parameter.find("pad") != std::string::npos) {
      convert(" as padding");
    }
    if (field->quantity == Quantity::mask && refuses(interview)) convert(" as float");
    if (field->role == Role::label && refuses(interview)) convert(" as int64");
  }
  if (interview.answered == 0) {  // as a trainer gathers counts
    add([&](impl::Subject& subject) {
      for (const auto& [parameter, source] : interview.greeting.arguments) {
        const bool fact = source.starts_with("fact:");
        if (fact) subject.arguments.emplace_back(parameter, source + " as tensor");
      }
    });
  }
  // What it returns at masked positions may be nobody's to read.
  const bool reads = interview.subject.contract.masked_outputs;
  if (interview.answered > 0 && loss.reductions.empty() && reads) {
    add([](impl::Subject& subject) { subject.contract.masked_outputs = false; });
  }
  // Right on some of them: those of which nothing within a sequence is masked, it may be.
  const bool some = !interview.likenesses.empty() && interview.best().equal > 0;
  if (some && properties::has_positions(loss) && interview.subject.contract.scattered_mask) {
    add([](impl::Subject& subject) { subject.contract.scattered_mask = false; });
  }
  const bool groups =
      std::ranges::find(loss.fields, Role::group, &Field::role) != loss.fields.end();
  if (groups && refuses(interview) && interview.subject.contract.uneven_groups) {
    add([](impl::Subject& subject) { subject.contract.uneven_groups = false; });
  }
  // A number that is written into it, in place of the parameter that would stand for both.
  for (const auto& [option, followed] : interview.subject.tied) {
    add([&](impl::Subject& subject) {
      set_value(subject.options, option, loss.find_option(option)->standard);
    });
  }
  return ways;
}

std::vector<impl::Subject> explained_ways(const Interview& interview,
                                          const std::optional<Explanation>& explanation) {
  if (!explanation || explanation->told.empty()) return {};
  impl::Subject way = interview.subject;
  for (const auto& [name, value] : explanation->told) set_value(way.options, name, value);
  return {std::move(way)};
}

std::vector<impl::Subject> narrower_ways(const Interview& interview) {
  std::vector<impl::Subject> ways;
  const LossSignature& loss = interview.loss->signature;
  const auto add = [&](auto change) { change(ways.emplace_back(interview.subject)); };
  for (const auto& [name, value] : interview.subject.options) {
    for (const OptionValue& other : alternatives(*loss.find_option(name), value)) {
      if (interview.answered > 0) break;
      add([&](impl::Subject& subject) { set_value(subject.options, name, other); });
    }
  }
  // A support of one token; the tile of a kernel.
  for (const auto& [axis, extent] : {std::pair(Axis::support, 1), std::pair(Axis::responses, 1),
                                     std::pair(Axis::vocab, 128), std::pair(Axis::hidden, 128)}) {
    const bool pinned = interview.formula.signature().pinned_extent(axis).has_value();
    if (!loss.has_axis(axis) || pinned || (extent > 1 && !refuses(interview))) continue;
    add([&](impl::Subject& subject) { subject.axes.emplace_back(axis, extent); });
  }
  return ways;
}

}  // namespace lossgate::ci
