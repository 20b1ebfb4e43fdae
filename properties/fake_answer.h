// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/probes.h"
#include "properties/property.h"

/// For the tests of this folder: an implementation of any loss that answers what the formula gives,
/// wrong in one way.
namespace lossgate::properties {

/// Of what is asked, before the formula is; and of what it gives for the case as it was asked.
using ChangeCase = std::function<void(Case&)>;
using ChangeAnswer = std::function<void(const Case&, LossResult&)>;

impl::Implementation answering(const std::string& loss, ChangeCase asked,
                               ChangeAnswer answered = nullptr);

/// An output of the answer, to be changed.
Tensor& output(LossResult& result, std::string_view name);

template <class Change>
void change_each(Tensor& tensor, Change change) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, change(tensor.at(i)));
}

/// Ordinary numbers, some positions masked, the standard options.
Case ordinary_case(const std::string& loss, Dtype dtype = Dtype::f64);

/// A critic's loss that is the larger of two means, in the place of the mean of what is larger at
/// each token.
impl::Implementation larger_of_two_means();

/// A linear cross-entropy, of whose logits an implementation of the cross-entropy is asked.
impl::Implementation through_layer(const impl::Implementation& of_logits);

/// What is asked about a violation, and what of.
using AskViolation = std::function<void(CaseStudy&, const Property&, const Violation&)>;

/// Asks about the first violation of the case, property by property as a gate asks; not where the
/// case holds.
void ask_first_violation(const impl::Implementation& implementation, const Case& c,
                         const AskViolation& ask);

/// Whether the probe says something of the first violation, whatever others say.
bool speaks(Opinion (*probe)(Suspect&), const impl::Implementation& implementation, const Case& c);

/// The first violation of the case with its diagnosis; "held" where there is none.
Diagnosis diagnosed(const impl::Implementation& implementation, const Case& c);

/// Expects the cause that an experiment shows, and what it says.
void expect_shown(const impl::Implementation& implementation, const Case& c,
                  const std::string& cause, const std::string& because);

/// The same of a number that is not finite and was lost, whatever became of it.
void expect_shown_of_lost(const impl::Implementation& implementation, const Case& c,
                          const std::string& cause, const std::string& because);

std::vector<bool> valid_of(const Case& c);

/// What is at each valid position, or at each masked one.
template <class Visit>
void at_positions(const Case& c, bool valid, Visit visit) {
  const std::vector<bool> counts = valid_of(c);
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (counts[p] == valid) visit(static_cast<std::int64_t>(p));
  }
}

void add_to_loss(LossResult& result, double x);

}  // namespace lossgate::properties
