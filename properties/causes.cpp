// SPDX-License-Identifier: Apache-2.0
#include "properties/causes.h"

#include <algorithm>

namespace lossgate::properties {

const std::vector<Cause>& causes() {
  static const std::vector<Cause> all = {
      // What is masked.
      {"non-finite value behind a mask",
       "A value at a masked position is no number before the mask is applied to it.",
       "select valid positions (where, not a product) before the first operation, not after the "
       "last"},
      {"value repaired, gradient not",
       "The loss leaves out, or mends, what was no number; the operation behind it still has an "
       "infinite slope, and zero times that is NaN.",
       "a second where, around the operation's argument, or select before it: what mends a value "
       "or leaves it out mends no slope; at a position that counts mend neither: raise, or let the "
       "NaN show in both"},
      {"masked data leaks", "Masked positions reach the result, by their numbers or as such.",
       "select with where before the first operation, and add nothing for a masked position"},
      {"gradient at a masked position",
       "The loss does not depend on a masked position, its gradient is not 0 there.",
       "zero the rows of masked positions in the backward, too"},
      {"sentinel compared",
       "Masked positions are found by a number that stands there, not by the mask.",
       "decide by mask or label; a sentinel is rounded by a cast and differs from caller to "
       "caller"},

      // Overflow and underflow.
      {"clamp after exp",
       "What bounds the result comes after exp has overflowed: the slope 0 of a bound meets an "
       "infinite one; or after the logarithm of what a list leaves, where it leaves nothing.",
       "bound the argument before exp: a clip of the result leaves 0 x inf in the backward"},
      {"dead clamp", "A limit that the options set has no effect.",
       "apply the limit to the value that the loss uses, on every path"},
      {"undeclared bound",
       "What the loss is made of is held within a bound that the formula does not have.",
       "take the clamp away: beyond it the worst examples have no gradient, and a NaN or infinity "
       "is a number; or declare the loss that has it, or, where callers never come there, their "
       "largest numbers"},
      {"exp of an unshifted logit", "exp is taken of logits as they are.",
       "subtract the row's maximum first, as logsumexp does"},
      {"logarithm of an underflow",
       "log is taken of a probability that has become 0, or another one is divided by it.",
       "stay with log-probs: log_softmax, not log(softmax); logsigmoid, not log(sigmoid); "
       "logaddexp for a mixture; exp(a - b), not exp(a) / exp(b)"},
      {"zero times infinity",
       "An impossible token's probability 0 meets its infinite logarithm, or a zero advantage, or "
       "the 0 of a filter, an infinite weight, or that of a mask what overflows there.",
       "select: where the factor is 0 the term is 0, and its gradient"},
      {"infinity minus infinity", "A maximum of logits that are all -inf is subtracted from them.",
       "rescale by the running maximum only where it is finite"},
      {"overflow of a square or sum",
       "A square, a sum or a product overflows on the way to a number that fits.",
       "scale before squaring: (d / 2) d, not d d / 2; add logarithms and take exp last, not a "
       "product of exponentials; where callers never come there, declare their largest numbers"},
      {"infinite slope", "The gradient of a finite loss is no number.",
       "keep away from where the slope is infinite: 0 for sqrt, log and norms, far out for exp"},
      {"unbounded exponent", "Finite inputs overflow.",
       "clamp what the exponential and the products are given"},

      // Counts.
      {"empty divisor", "Where nothing counts, the sum is divided by a count of 0.",
       "give the divisor a floor of 1 where nothing is valid"},
      {"padding counted",
       "A divisor, or the way from a token to the next, counts masked positions.",
       "count valid positions, never positions"},
      {"empty row counted", "A sequence without a valid position is counted.",
       "divide by the sequences that have a valid token"},
      {"wrong divisor", "Terms are divided by another count than the reduction says.",
       "divide by what the reduction counts: valid tokens, sequences, or the given number"},
      {"scaled twice", "A count divides the terms twice.",
       "normalise once; scale a copy, as an in-place normalisation runs twice"},
      {"mean of means",
       "Each micro-batch, rank, chunk or buffer is divided by its own count, and the means are put "
       "together.",
       "divide by the whole step's count, of tokens or of sequences, and sum over chunks, "
       "micro-batches "
       "and ranks"},
      {"averaged too early",
       "A mean is taken before the maximum, bound or other curve that the formula has around each "
       "term.",
       "apply max, min, clamp and exp to the numbers of each token, and average last"},
      {"rank average",
       "The average that the all-reduce takes over ranks is not undone, or is twice.",
       "multiply by the number of ranks once, or all-reduce sums"},
      {"remainder dropped",
       "Sequences that do not fill a micro-batch, or classes that do not fill a block, are lost.",
       "deal out all of them; the last micro-batch, or block, may be smaller"},
      {"off by one position",
       "A token is read beside its place, or one at an end of its sequence has no part.",
       "shift logits, labels and mask against each other once, in one place; let ranges end where "
       "the sequence does"},
      {"full row mistaken",
       "A sequence that ends where the batch does is treated unlike one that ends before.",
       "let the mask say where a sequence ends, never the end of the batch"},
      {"class mistaken", "A label stands for another class than its own.",
       "let classes run from 0 to one less than the vocabulary is large; mask what has no class, "
       "and bound no label"},
      {"pairing by position", "A sequence gets what belongs to another one.",
       "look rows up by their own data, never by their place in the batch"},
      {"groups mixed up", "Groups are taken for one another by the numbers that they have.",
       "compare all 64 bits of a number: as a float, in 32 bits or as a remainder another one is "
       "the same; let it be no index"},

      // Formula and signal.
      {"wrong sign", "What is wrong is right with the other sign.",
       "negate it; of a gradient whose loss is right, see first whether detach stands on the wrong "
       "side of a difference"},
      {"distributions exchanged",
       "Two distributions stand the other way round in a divergence, an estimate of it or a ratio.",
       "exchange them: KL(p || q) is the mean under p of log p - log q, and its estimators take "
       "log q - log p of p's sample"},
      {"fields exchanged",
       "Two arguments stand in each other's place, or one in the place of another.",
       "hand arguments over by name, and write the formula's differences down term by term"},
      {"wrong baseline",
       "A reward is compared with the mean of other samples, or by another count, than is asked.",
       "leave-one-out: (sum - own) / (k - 1) of k samples; else sum / k"},
      {"wrong deviation",
       "A distance is divided by the deviation of other samples than is asked, by another count, "
       "with its epsilon elsewhere or for a floor, or by a rule of its own for rewards of 0 and 1 "
       "or numbers that are all the same.",
       "take it of all samples that are asked for and of no other ones, with the formula's divisor "
       "(unbiased or not), and the epsilon in the root or beside it as the formula has it, added "
       "and no floor; rewards of 0 and 1, and a deviation of 0, need no other rule"},
      {"option misread", "An option is ignored, applied twice, or means something else.",
       "compare how the formula in the signature uses that option"},
      {"dead signal", "A term of the loss, or all of it, has no gradient.",
       "look for detach, no_grad or a constant on the way to the loss; in a backward by hand, "
       "for a term or entries that it leaves out"},
      {"gradient through a clamp", "A gradient flows where a clamp or clip holds.",
       "the slope beyond a bound is 0: clamp the variable itself, not a detached copy"},
      {"gradient through what is constant",
       "The gradient includes a factor that the formula takes for a constant.",
       "detach the weight"},
      {"gradient filtered",
       "Small entries of a gradient are left out: a trade-off of some kernels, which they declare.",
       "turn the filter off, or declare a gradient stored no finer"},
      {"gradient without an advantage", "With all advantages 0 there is a gradient.",
       "multiply by the advantage last, and nothing by anything else"},

      // Rounding.
      {"narrow arithmetic",
       "An operation, a stored intermediate or a sum has a narrower format than declared; to "
       "accumulate in it is a trade-off where it is declared.",
       "widen before the first operation and accumulate in f32, or declare the stage"},
      {"narrowed by autocast",
       "Inside torch.autocast the answer is another one, or none: matrix products are formed in 16 "
       "bits there, whatever comes in.",
       "multiply and sum() in the place of einsum, matmul and bmm, or compute the loss inside "
       "torch.autocast(device_type, enabled=False)"},
      {"cancellation", "Nearly equal numbers are subtracted where a stable form exists.",
       "use the stable form: expm1(x) - x, not exp(x) - x - 1; squares of x less its mean, not a "
       "mean of squares less a squared mean"},
      {"epsilon in a logarithm", "A constant is added to a probability before its logarithm.",
       "use log_softmax; it needs none"},

      // What must not be accepted.
      {"laundering", "A NaN or infinity at a valid position becomes a plausible number.",
       "no nan_to_num at valid positions: raise, or let the NaN show; comparisons with it are "
       "false, so drop what is beyond a bound in the place of keeping what is within"},
      {"invalid input accepted", "Invalid input is computed with.",
       "check labels, masks and options before they are read"},
      {"refusal names another argument", "The refusal blames an argument that is right.",
       "name the argument that failed the check"},
      {"legal input refused", "Legal input is refused.",
       "compute it, or declare what is not (of a length that callers never reach: longest)"},
      {"ordinary input refused", "Plain numbers are refused, too: nothing was compared.",
       "call it once by hand with such a batch on the device and in the format that are declared"},

      // The program around the formula.
      {"a row reads another row", "A sequence's result depends on the others' order.",
       "index rows by their own data, never by their place in the batch"},
      {"order of operations varies", "The same input gives other bits.",
       "no atomics or uninitialised memory in the reduction"},
      {"state between calls", "What else was asked, before or in between, changes the answer.",
       "keep nothing from call to call, and draw nothing: clear accumulators, key caches by all "
       "that they hold; leave what a forward kept as it is for as long as its graph lives"},
      {"depends on requires_grad",
       "Which gradients the caller asks for changes the loss, or a gradient that it asks for.",
       "let requires_grad, is_grad_enabled() and ctx.needs_input_grad decide what is kept for the "
       "backward, each for its own input, and never what is returned"},
      {"wrong upstream factor",
       "The backward hands on gradients without the factor that comes from above, or with another.",
       "multiply every gradient that the forward kept by the incoming one: it is 1 only where "
       "backward starts at this loss"},
      {"strides ignored", "A tensor that is a view is read as if it lay in one piece.",
       "address by the tensor's own strides, or make it contiguous first"},
      {kWrongBeyondALength, "What is right for a short axis is wrong for a longer one.",
       "loop over blocks and what is left over of them, ask whether the launch failed, and count "
       "and index in 64 bits"},
      {"broadcast to a matrix",
       "Two shapes, (n, 1) and (n), broadcast to (n, n): every row meets every other one.",
       "give both one shape: unsqueeze or squeeze one of them, and assert that they are equal"},
      {"single one mistaken",
       "What is right where there are several is wrong where an axis or a group has one.",
       "name the axes that squeeze(), broadcasting and deviations work along: they treat an axis "
       "of one unlike others; give a group of one what the formula gives it"},
      {"input overwritten", "An input changes during the call.",
       "scale a copy: an in-place normalisation runs twice"},
      {"setting left changed", "The call leaves something changed that all code computes by.",
       "restore it on every way out: in a finally, a context manager or a destructor"},
      {"malformed result", "An output is missing, is not filled, or has another shape or dtype.",
       "return every number of every output, in the fields' dtype; a library writes them all"},
      {kBeyondTheShift,
       "A function that moves its labels by one position has a gradient at the position that this "
       "leaves out.",
       "take logits[:, :-1] and labels[:, 1:] before anything is flattened, rolled or counted"},
      {"another formula", "Ordinary data in a wide format show another loss.",
       "declare the loss, options and reduction that it has (lossgate identify names them), or "
       "mend "
       "it"},

      // What was seen, where no experiment says why.
      {"overflow on a live path", "A value is no number where the formula's fits.",
       "bound the argument of exp, or use the stable form", true},
      {"non-finite slope behind a bound", "The loss is finite, its gradient is not.",
       "bound the argument before exp: a clip of the result leaves 0 x inf in the backward", true},
      {"not finite", "A value is no number where the formula's is one.",
       "bound the argument of exp, or use the stable form", true},
      {"disagrees with the formula", "A value differs by more than its arithmetic can.",
       "replay the case and compare each stage with the formula (lossgate describe LOSS)", true},
      {"backward is not the derivative", "The forward is right and its gradient is not.",
       "derive the backward again from the forward", true},
      {"paths drift apart", "Two paths to the same numbers differ.",
       "compare both paths with the reference; the farther one is wrong", true},
      {"reduction over the wrong scope", "A split batch does not give what the whole gives.",
       "divide by the whole step's count, of tokens or of sequences, and sum over micro-batches "
       "and "
       "ranks",
       true},
  };
  return all;
}

const Cause* find_cause(std::string_view name) {
  const auto& all = causes();
  const auto at = std::ranges::find(all, name, &Cause::name);
  return at == all.end() ? nullptr : &*at;
}

std::string_view cause_of_no_result(const std::vector<std::string>& beside) {
  return std::ranges::find(beside, "shifted") == beside.end() ? "malformed result"
                                                              : kBeyondTheShift;
}

bool gives_no_result(std::string_view cause) {
  return cause == "legal input refused" || cause == "ordinary input refused" ||
         cause == "malformed result" || cause == kBeyondTheShift;
}

}  // namespace lossgate::properties
