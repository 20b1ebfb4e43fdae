# SPDX-License-Identifier: Apache-2.0
"""One function for each kind of evidence: from what its units counted to figures and tables."""

from __future__ import annotations

import hashlib
from collections import Counter

from figure import Figure, median, power_of_two, table
from proportion import few, most, percent

Section = tuple[list[Figure], list[str]]


def step_median(steps: Counter) -> float:
    """The median of what was counted in quarters of a power of two, as far into its own as its rank is."""
    half, below = sum(steps.values()) / 2, 0
    for step in sorted(steps):
        if below + steps[step] >= half:
            return 2.0 ** ((step - 1 + (half - below) / steps[step]) / 4)
        below += steps[step]
    return 0.0


def share_without_bound(units: list[dict], profile: str) -> float | None:
    """Of the values that fit, those of which the bound says nothing."""
    without, judged = (sum(u.get(key, {}).get(profile, 0) for u in units) for key in ("without_bound", "judged"))
    return without / (without + judged) if without + judged else None


def bounds(units: list[dict]) -> Section:
    values = sum(u["values"] for u in units)
    outside, uncertain = sum(u["outside"] for u in units), sum(u["uncertain"] for u in units)
    rows, loose, least = [], [], None
    for loss, dtype in dict.fromkeys((u["loss"], u["dtype"]) for u in units):
        of = [u for u in units if (u["loss"], u["dtype"]) == (loss, dtype)]
        asked = sum(u["values"] for u in of)
        least = asked if least is None else min(least, asked)
        medians = {}
        for key in sorted({key for u in of for key in u["textbook"]}):
            parts = [u["textbook"][key] for u in of if key in u["textbook"]]
            steps = Counter()
            for part in parts:
                steps.update({int(step): n for step, n in part["steps"].items()})
            middle = step_median(steps)
            medians.setdefault(key.split("/")[0], []).append((key.split("/")[1], middle))
        loose += [(loss, dtype, name, middle) for name, middle in medians.get("benign", ()) if middle < 0.01]
        largest = max((part["largest"] for u in of for part in u["textbook"].values()), default=0.0)
        rows.append((loss, dtype, f"{asked:,}", sum(u["outside"] for u in of), f"{largest:.3g}",
                     f"{max(u['adversary'] for u in of):.3g}", f"{max(u['reference'] for u in of):.1g}",
                     *("; ".join(f"{name.replace('gradient.', 'd ')} {middle:.2g}" for name, middle in medians.get(p, ()))
                       for p in ("benign", "hostile")),
                     *(percent(share) if (share := share_without_bound(of, p)) is not None else ""
                       for p in ("benign", "hostile"))))
    vacuous = {p: share for p in ("benign", "hostile") if (share := share_without_bound(units, p)) is not None}
    figures = [
        Figure("values outside the bound", "0", few(outside, values), outside == 0),
        Figure("values for which the reference is not certain", "0", few(uncertain, values), uncertain == 0),
        Figure("values of a loss and dtype, at least", ">= 10^6", f"{least or 0:,}", (least or 0) >= 10**6),
        Figure("worst share of an adversary within its arithmetic, were errors half as large", "> 2, an alarm",
               f"{max((u['adversary_at_half_the_error'] for u in units), default=0.0):.2f}",
               any(u["adversary_at_half_the_error"] > 2 for u in units)),
        Figure("outputs whose benign median is below 1/100 of the bound", "0",
               f"{len(loose)} of {sum(len(r[7].split('; ')) for r in rows if r[7])}", not loose),
        *(Figure(f"{p} values that fit and have no bound at all", "<= 1 %", percent(share), share <= 0.01)
          for p, share in vacuous.items()),
    ]
    body = ["Largest: of a textbook evaluation, of an adversary that errs by all that each operation may, and of the "
            "reference itself, as shares of the allowed error; a share of 2 is a violation. Medians are of the textbook's "
            "error before its last store, as a share of the bound of that, where it has an error and its form is declared. Without "
            "a bound: shares of the values that fit, and of which all that they are made of does.", ""]
    body += table(("loss", "dtype", "values", "outside", "textbook", "adversary", "reference", "benign medians",
                   "hostile medians", "benign without a bound", "hostile without"), rows)
    body += ["", *[f"* below 1/100: {name} of {loss} in {dtype}, {middle:.2g}" for loss, dtype, name, middle in loose]]
    return figures, body


def filtered(units: list[dict]) -> Section:
    cases, different = (sum(u[key] for u in units) for key in ("cases", "different"))
    figures = [
        Figure("verdicts that the filter changes", "0", few(different, sum(u["verdicts"] for u in units)), different == 0),
        Figure("cases that were asked with the filter and without it", ">= 10^6", f"{cases:,}", cases >= 10**6),
    ]
    rows = []
    for loss, dtype in dict.fromkeys((u["loss"], u["dtype"]) for u in units):
        of = [u for u in units if (u["loss"], u["dtype"]) == (loss, dtype)]
        verdicts = Counter()
        for unit in of:
            verdicts.update(unit["by_verdict"])
        decided, held = (sum(u[key] for u in of) for key in ("decided", "held"))
        rows.append((loss, dtype, f"{sum(u['cases'] for u in of):,}",
                     ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items())),
                     percent(decided / held) if held else "", sum(u["different"] for u in of)))
    return figures, ["Decided: the comparisons that hold for which long double was not needed. An f64 implementation is "
                     "never asked in double.", "",
                     *table(("loss", "dtype", "cases", "verdicts", "decided", "changed"), rows)]


def null_answers(units: list[dict]) -> Section:
    right = [u for u in units if u["right"] + u["refused"] == u["cases"]]
    units = [u for u in units if u not in right]
    accepted = [u for u in units if u["accepted"]]
    figures = [Figure("null answers that a gate accepts", "0", few(len(accepted), len(units)), not accepted)]
    rows = []
    for answer in dict.fromkeys(u["answer"] for u in units):
        of = [u for u in units if u["answer"] == answer]
        total = Counter()
        for u in of:
            total.update(u["unseen"])
        wrong = sum(u["cases"] - u["right"] - u["refused"] for u in of)
        caught = [u["caught"]["case"] for u in of if u["caught"]]
        rows.append((answer, len(of), sum(u["accepted"] for u in of), median(caught) if caught else "-",
                     max(caught, default="-"), f"{sum(u['violated'] for u in of):,} of {wrong:,}",
                     ", ".join(f"{n:,} {verdict}" for verdict, n in total.most_common(3))))
    body = table(("answer", "subjects", "accepted", "first finding at case, median", "at most", "other than the right one, and noticed",
                  "not noticed: `reference_agreement` said"), rows)
    subjects = {(u["loss"], u["dtype"], u["implementation"]) for u in units}
    body += ["", f"A subject is one of {len(subjects)} (loss, dtype, sound implementation) that answers so to every "
             f"case; {len({u['loss'] for u in units})} losses. An answer that is not noticed lies within the bound: most are "
             "gradients that vanish beside their own rounding."]
    if right:
        body += ["", f"Left out, for it is right in every case: {', '.join(sorted({u['answer'] + ' for ' + u['loss'] for u in right}))}."]
    for u in accepted:
        body.append(f"* accepted: {u['answer']}, {u['implementation']} of {u['loss']} in {u['dtype']}")
    return figures, body


def recall(units: list[dict]) -> Section:
    of_length = [kill for u in units if u.get("of_length") for kill in u["windows"]]
    lengthy = sum(kill is not None for kill in of_length)
    long_alarms, long_asked = (sum(u[key] for u in units if u.get("of_length")) for key in ("twin_violated", "twin_cases"))
    units = [u for u in units if not u.get("of_length")]
    windows = [kill for u in units for kill in u["windows"]]
    seen = sum(kill is not None for kill in windows)
    first = sum(u["windows"][0] is not None for u in units)
    tenfold = sum(u["tenfold"] for u in units)
    rare = [u for u in units if u["windows"][0] is None]
    found = sum(u["hostile"] is not None for u in rare)
    benign = sum(u["benign"] is not None for u in units)
    one = sum(u["benign"] is not None and u["benign"]["cases"] <= 5 for u in units)
    alarms, asked = (sum(u[key] for u in units) for key in ("twin_violated", "twin_cases"))
    budget = f"{units[0]['budget_seconds']:g} s of CPU" if units else ""
    figures = [
        Figure("faulty variants noticed within 8 hostile cases, the gate's seed", ">= 99 %", most(first, len(units)),
               first >= 0.99 * len(units)),
        Figure(f"the same, {len(units[0]['windows']) if units else 0} seeds each", ">= 99 %",
               most(seen, len(windows)), seen >= 0.99 * len(windows)),
        Figure("the gate's seed again, were every error ten times as large", "", most(tenfold, len(units)), None),
        Figure(f"of those not within 8: within {budget}", ">= 98 %", most(found, len(rare)),
               found >= 0.98 * len(rare)),
        Figure("of those that only long cases show (rule E10): noticed on the few that a gate draws, of as many seeds each",
               ">= 98 %", most(lengthy, len(of_length)), lengthy >= 0.98 * len(of_length)),
        Figure("noticed on 5 benign cases, what an ordinary test sees", "", most(one, len(units)), None),
        Figure("noticed on benign cases only, " + (f"{units[0]['benign_cases']:,}" if units else ""), "",
               most(benign, len(units)), None),
        Figure("cases on which a sound twin was accused meanwhile", "0", few(alarms + long_alarms, asked + long_asked),
               alarms + long_alarms == 0),
        Figure("cases of those a second of one core, all properties, in the gate's process", "",
               f"{asked / max(sum(u['twin_seconds'] for u in units), 1e-9):,.0f}", None),
    ]
    slow = [u for u in units if None in u["windows"]]
    slow.sort(key=lambda u: sum(kill is not None for kill in u["windows"]))
    rows = []
    for u in slow:
        hits = sum(kill is not None for kill in u["windows"])
        kill = u["hostile"]
        rows.append((f"`{u['variant']}`", u["loss"], u["fault"], f"{hits} of {len(u['windows'])}",
                     f"{kill['cases']:,} cases, {kill['seconds']:.2g} s" if kill else "**never**",
                     f"case {u['benign']['cases']}" if u["benign"] else "never"))
    middle = median([kill["cases"] for kill in windows if kill])
    body = [f"{len(units)} variants of {len({u['loss'] for u in units})} losses; median hostile case that shows one: "
            f"{middle:.0f}. Bounds take seeds of one variant for independent.",
            "", "Not noticed within 8 hostile cases of some seed:", ""]
    body += table(("variant", "loss", "fault", "seeds", "noticed after", "on benign cases"), rows)
    return figures, body


def in_hashed_half(unit: dict) -> bool:
    """Half of the variants, chosen by their names alone, on which no probe was tried while it was written."""
    return hashlib.sha256(f"{unit['loss']}/{unit['variant']}".encode()).digest()[0] % 2 == 1


def cause(units: list[dict]) -> Section:
    """Of the first finding of every seed: does its cause name the class that the variant is registered with?"""
    figures, rows = [], []
    for name, of in (("all variants", units), ("the half chosen by hash", [u for u in units if in_hashed_half(u)])):
        said = [(u["fault"], kill["cause"]) for u in of for kill in u["windows"] if kill]
        right = sum(fault == word for fault, word in said)
        figures.append(Figure(f"first finding names the right cause, {name}", ">= 95 %", most(right, len(said)),
                              right >= 0.95 * len(said)))
    for fault in sorted({u["fault"] for u in units}):
        of = [u for u in units if u["fault"] == fault]
        said = Counter(kill["cause"] for u in of for kill in u["windows"] if kill)
        total = sum(said.values())
        rows.append((fault, len(of), percent(said[fault] / total) if total else "-",
                     ", ".join(f"{word} {percent(n / total)}" for word, n in said.most_common(3) if word != fault)))
    body = ["From the record of `recall`. The class stands with the registration of each variant.", "",
            *table(("class", "variants", "named", "else named"), rows)]
    return figures, body


SURE = 6.0  # standard deviations of a mean


def bias(units: list[dict]) -> Section:
    """Put in: how far a systematic error moves the mean of signed error ratios, in deviations of that mean."""
    def moved(text: dict) -> float:
        return (text["mean_of_biased"] - text["mean"]) / max(text["deviation_of_mean"], 1e-300)

    def noticed(text: dict) -> float:
        return (SURE * text["deviation_of_mean"] + abs(text["mean"])) / text["gain"]

    figures, rows = [], []
    size = units[0]["bias"] if units else 0.0
    for output in ("the loss", "gradients"):
        of = [u["outputs"][output] for u in units if u["dtype"] == "f32" and "gain" in u["outputs"][output]]
        seen = sum(moved(text) >= SURE for text in of)
        figures.append(Figure(f"implementations of which a systematic {size:g} in {output} is seen, f32, over many cases", "all",
                              most(seen, len(of)), seen == len(of)))
    for u in units:
        for output, text in u["outputs"].items():
            if "gain" in text:
                offset = text["mean"] / max(text["deviation_of_mean"], 1e-300)
                rows.append((u["loss"], u["dtype"], u["implementation"], output, f"{text['cases']:,}",
                             f"{text['mean']:+.2g}", f"{offset:+.1f}", f"{moved(text):.1f}", f"{noticed(text):.2g}"))
    body = [f"A case is one observation of the mean of its signed error ratios. A systematic error is seen where it moves "
            f"the mean by {SURE:g} of its standard deviations or more; sound code has a small offset of its own, which is "
            f"why this gives advice and no verdict.", "",
            *table(("loss", "dtype", "implementation", "output", "cases", "mean ratio", "in deviations",
                    f"moved by {size:g}, in deviations", "beyond its own offset from"), rows)]
    return figures, body


def baselines(units: list[dict]) -> Section:
    rows, rates = [], {}
    for oracle in dict.fromkeys(u["oracle"] for u in units):
        of = [u for u in units if u["oracle"] == oracle]
        faulty, sound = [u for u in of if not u["sound"]], [u for u in of if u["sound"]]
        # Of sound ones: a faulty one ends at its first alarm.
        rates[oracle] = sum(u["cases"] for u in sound) / max(sum(u["seconds"] for u in sound), 1e-9)
        why = Counter(u["why"] for u in sound if u["alarm"])
        rows.append((oracle, most(sum(u["alarm"] for u in faulty), len(faulty)), few(sum(why.values()), len(sound)),
                     f"{rates[oracle]:,.0f}", ", ".join(f"{n} {text}" for text, n in why.most_common(2))))
    compiled = [name for name in rates if name.endswith("a compiled loss")]
    ours = [name for name in rates if name.startswith("lossgate") and name not in compiled]
    theirs = [name for name in rates if name.startswith("Hypothesis")]
    figures = []
    for name in ours:
        of = [u for u in units if u["oracle"] == name]
        alarms = sum(u["alarm"] for u in of if u["sound"])
        figures.append(Figure("sound Python twins accused by a gate", "0", few(alarms, sum(u["sound"] for u in of)),
                              alarms == 0))
    for name in (ours + compiled) if theirs else ():
        ratio = rates[name] / rates[theirs[0]]
        how = "of a compiled loss" if name in compiled else "of a loss in Python, all properties"
        figures.append(Figure(f"cases per second {how}, beside the Hypothesis harness", ">= 20 x", f"{ratio:.1f} x",
                              ratio >= 20))
    losses = len({u["loss"] for u in units if u["oracle"] not in compiled})
    return figures, [f"{losses} losses of impl/external/python/given_faulty_losses.py, and the same written soundly "
                     "(ci/evidence/baselines). Rates per second and core, where nothing stops early; that of a compiled "
                     "loss is what more cases cost, so a gate's start and its long cases are not in it.", "",
                     *table(("what is asked", "faulty ones noticed", "sound ones accused", "cases a second",
                             "accused for"), rows)]


def sensitivity(units: list[dict]) -> Section:
    units = [u for u in units if u["cases"]]
    figures, body = [], []
    for fault in dict.fromkeys(name for u in units for name in u["faults"]):
        of = [(u, u["faults"][fault]) for u in units if u["faults"][fault]["faults"]]
        measured = [(u, f) for u, f in of if "ratio" in f]
        worst = max((f["smallest_noticed"] / f["smallest_implied"] for _, f in measured), default=0.0)
        missed = sum(f["missed"] for _, f in of)
        count = sum(f["faults"] for _, f in of)
        text = f"{worst:.3g} x implied at most, {count:,} faults" + (f", {missed} never noticed" if missed else "")
        figures.append(Figure(f"smallest {fault} noticed", "<= 1.2 x implied", text, worst <= 1.2 and not missed))
        dtypes = [d for d in ("f64", "f32", "f16", "bf16") if any(u["dtype"] == d for u, _ in measured)]
        rows = []
        for loss in dict.fromkeys(u["loss"] for u, _ in measured):
            cells = []
            for dtype in dtypes:
                here = [f for u, f in measured if u["loss"] == loss and u["dtype"] == dtype]
                cells.append("; ".join(f"{power_of_two(f['smallest_noticed'])} "
                                       f"({f['smallest_noticed'] / f['smallest_implied']:.2f}; "
                                       f"{f['ratio']['median']:.2f}, {f['ratio']['p95']:.2f})" for f in here) or "-")
            rows.append((loss, *cells))
        body += [f"### {fault}", "", *table(("loss", *dtypes), rows), ""]
    of = [f for u in units for f in u["faults"].values() if f["faults"]]
    if of:
        count, noticed, tenfold = (sum(n) for n in zip(*((f["faults"], f["beyond"]["noticed"], f["beyond"]["tenfold"]) for f in of)))
        size = f"faults of {of[0]['beyond']['size']:g} x implied noticed"
        figures += [Figure(size, "all", most(noticed, count), noticed == count),
                    Figure(f"{size}, were every error ten times as large", "fewer", most(tenfold, count), tenfold < noticed)]
    return figures, ["A cell: relative size of the smallest fault that was noticed (beside the smallest that the bounds "
                     "imply for a stored number; median and 95th percentile of that quotient, case by case).", "", *body]

