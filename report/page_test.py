# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: nothing runs but its own script, nothing is loaded, everything is reached.

    LOSSGATE_PROGRAM=build/no-torch/bin/lossgate_fake python report/page_test.py

Needs playwright and axe-playwright-python (1.65.2 and 0.1.8) from PyPI and a chromium (LOSSGATE_CHROMIUM, else that of
the system). LOSSGATE_RUNS names folders of more runs to look at, LOSSGATE_SHOTS a folder for screenshots.
"""

from __future__ import annotations

import copy
import json
import os
import pathlib
import resource
import shutil
import sys
import unittest
from typing import Any, Iterator

from given_run import PROGRAM, GivenRun, lossgate

CHROMIUM = os.environ.get("LOSSGATE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
SIZES = ((1440, 900), (768, 1024), (390, 844))
HOSTILE = [
    "<script>window.ran = 1</script>", "</script><script>window.ran = 1</script>", "<svg onload=window.ran=1>",
    "<img src=x onerror=\"window.ran = 1\">", "\" onmouseover=\"window.ran = 1", "' autofocus onfocus='window.ran = 1",
    "<!-- <script>", "--></style></title><script>window.ran = 1</script>", "javascript:window.ran=1",
    "<a href=\"javascript:window.ran=1\">x</a>", "<iframe srcdoc=\"<script>parent.ran=1</script>\"></iframe>",
    "<base href=\"http://example.invalid/\">", "<style>*{display:none}</style>", "&lt;script&gt;&#60;b&#62;",
    "<meta http-equiv=refresh content=\"0;url=http://example.invalid/\">", "\\u003cscript\\u003e", "${7*7}{{7*7}}",
    "\u202e reversed \u2066", "\ufeff\u200b\u2028", "\x00\x1b[31m", "损失 🔥", "__proto__", "constructor", "a\nb\tc", "`'\"",
]


def missing() -> str:
    """Why the page cannot be opened here; empty if it can."""
    if not PROGRAM:
        return "LOSSGATE_PROGRAM names no command"
    if not CHROMIUM:
        return "no chromium on the path and none in LOSSGATE_CHROMIUM"
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        return f"no {error.name} in {sys.executable}; pip install playwright axe-playwright-python"
    return ""


class PageTest(GivenRun):
    @classmethod
    def setUpClass(cls) -> None:
        from playwright.sync_api import sync_playwright
        super().setUpClass()
        player = sync_playwright().start()
        cls.addClassCleanup(player.stop)
        cls.browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)

    def report_of(self, name: str, *runs: dict[str, Any], benchmarks: Any = None) -> pathlib.Path:
        """The page of records that are written here; the processor's seconds that it took stay in self.seconds."""
        files = []
        for number, run in enumerate(runs):
            files.append(self.folder / name / f"run-{number}" / "run.json")
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            files[-1].write_text(json.dumps(run), encoding="utf-8")
            if benchmarks is not None:
                (files[-1].parent / "benchmarks.json").write_text(json.dumps(benchmarks), encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = lossgate("report", *files, "--out", name, cwd=self.folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name / "report.html"

    BENCHMARKS = {"benchmarks": [{"name": f"jsd/{size}", "cpu_time": 3.5 * size, "time_unit": "us", "bytes_per_second": 2e9}
                                 for size in (1, 8, 64)]}

    def with_everything(self) -> dict[str, Any]:
        """The real record with what only some runs have: splits that move a loss, and a campaign."""
        splits = [{"loss": "grpo", "implementation": name, "dtype": "f32", "off_by": off_by, "worst": worst,
                   "worst_ordinal": 3, "worst_case": "23d5b5d2c27e780e", "worst_split": "[1, 2, 3] [0] on 2 ranks"}
                  for name, off_by, worst in (("fake_doubled", {"-1e-1": 53, "0": 13, "+1e0": 4, "-1e3": 2}, -1234.5),
                                              ("a_name_that_is_longer_than_any_room_for_it", {"+1e-4": 24000}, 5e-4))]
        campaign = [{"seconds": 1.5 * i, "cases": 900 * i, "features": int(90 * i ** .5), "findings": i // 20}
                    for i in range(1, 100)]
        return dict(self.real, splits=splits, campaign=campaign)

    def many(self, count: int) -> dict[str, Any]:
        """A real record with so many findings, all different."""
        record = copy.deepcopy(self.real)
        kinds = record["findings"]
        record["findings"] = []
        for number in range(count):
            finding = dict(kinds[number % len(kinds)], ordinal=number, source_line=1 + number % 400)
            finding["fingerprint"] += f"|{number}"
            finding["cause"] = f"cause {number % 97}"
            record["findings"].append(finding)
        return record

    def open(self, page_file: pathlib.Path, size: tuple[int, int] = SIZES[0], scheme: str = "light",
             **options: object) -> Any:
        """The page, opened. What the browser says against it ends up in self.complaints."""
        context = self.browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **options)
        self.addCleanup(context.close)
        self.complaints: list[str] = []
        page = context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: request.url in (page_file.as_uri(), "data:,")
                or self.complaints.append(request.url))
        page.goto(page_file.as_uri())
        return page

    def pages(self) -> Iterator[pathlib.Path]:
        yield self.folder / "real" / "report.html"
        yield self.report_of("campaign", self.with_everything(), self.with_everything(), benchmarks=self.BENCHMARKS)
        yield self.report_of("pair", dict(self.real, findings=self.real["findings"][1:]), self.real)
        for folder in filter(None, os.environ.get("LOSSGATE_RUNS", "").split(os.pathsep)):
            yield pathlib.Path(folder).resolve() / "report.html"

    def test_opens_at_every_size_in_both_schemes_without_a_complaint(self) -> None:
        shots = os.environ.get("LOSSGATE_SHOTS")
        for number, file in enumerate(self.pages()):
            for size in SIZES:
                for scheme in ("light", "dark"):
                    page = self.open(file, size, scheme)
                    self.assertEqual(self.complaints, [])
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), size[0])
                    if shots:
                        page.screenshot(path=f"{shots}/{number}-{scheme}-{size[0]}.png", full_page=True)
                    page.context.close()
            page = self.open(file, (794, 1123))  # A4
            page.emulate_media(media="print")
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            self.assertEqual(page.evaluate(
                "[...document.querySelectorAll('td, th, svg, p, pre')]"
                ".filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 795)"
                ".map(e => e.outerHTML.slice(0, 100))"), [], "cut off on paper")
            if shots:
                page.pdf(path=f"{shots}/{number}.pdf", print_background=True)

    def test_has_no_serious_violation_of_accessibility(self) -> None:
        from axe_playwright_python.sync_playwright import Axe
        for file in self.pages():
            for scheme in ("light", "dark"):
                page = self.open(file, scheme=scheme)
                page.evaluate("document.querySelectorAll('details').forEach((d, i) => { if (i < 40) d.open = true; })")
                serious = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]])
                           for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
                self.assertEqual(serious, [], f"{file} {scheme}")

    def test_reads_without_a_script(self) -> None:
        page = self.open(self.folder / "real" / "report.html", java_script_enabled=False)
        self.assertIn("Red: ", page.inner_text("h1"))
        self.assertGreater(page.locator(".board td.v").count(), 0)
        self.assertEqual(page.locator(".finding:visible").count(), len(self.real["findings"]))
        page.locator(".finding summary").last.click()
        self.assertIn("lossgate replay", page.locator(".finding .repro").last.inner_text())
        self.assertGreater(page.locator(".grid td").count(), 0)

    def test_every_link_leads_somewhere(self) -> None:
        for file in self.pages():
            page = self.open(file)
            self.assertEqual(page.evaluate(
                "[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
                ".filter(href => href[0] !== '#' || !document.getElementById(href.slice(1)))"), [])
        page = self.open(self.folder / "real" / "report.html")
        card = page.locator(".finding").last.get_attribute("id")
        page.goto(f"{page.url}#{card}")
        self.assertTrue(page.locator(f"[id='{card}']").evaluate("element => element.open"), "the card is not unfolded")
        link = page.locator(".board td.v a").first
        link.click()
        folded = page.locator(f"[id='{link.get_attribute('href')[1:]}']")
        self.assertTrue(folded.evaluate("element => element.open"), "the counts are not unfolded")
        self.assertEqual(self.complaints, [])

    def test_every_button_works(self) -> None:
        page = self.open(self.folder / "real" / "report.html", permissions=["clipboard-read", "clipboard-write"])
        card = page.locator(".finding").first
        for label in ("Copy command", "Copy as pytest"):
            card.get_by_role("button", name=label).click()
            card.get_by_role("button", name="Copied").wait_for()
            copied = page.evaluate("navigator.clipboard.readText()")
            self.assertIn(card.locator(".repro code").inner_text().split(" --")[0], copied)
            card.get_by_role("button", name="Copied").wait_for(state="detached")
        compile(copied, "copied.py", "exec")
        self.assertRegex(copied, r"def test_\w+_of_fake_wrong\(\):")
        page = self.open(self.report_of("some", self.many(250)))
        for expected in (100, 200, 250):
            self.assertEqual(page.locator(".finding:visible").count(), expected)
            if expected < 250:
                page.get_by_role("button", name="Show more").click()
        self.assertFalse(page.get_by_role("button", name="Show more").is_visible())

    def test_shows_exact_values_by_pointer_and_by_keys(self) -> None:
        page = self.open(self.folder / "real" / "report.html")
        page.locator(".finding[open] .grid td").first.hover()
        self.assertRegex(page.locator(".finding[open] .readout").first.inner_text(), r"^\w+\[0.*\] .*")
        page.locator(".finding[open] .grid").nth(1).focus()
        page.keyboard.press("ArrowRight")
        self.assertRegex(page.locator(".finding[open] .readout").first.inner_text(), r"^gradient\.log_prob\[0")

    def test_draws_what_is_recorded(self) -> None:
        everything = self.with_everything()
        page = self.open(self.report_of("campaign", everything, everything, benchmarks=self.BENCHMARKS))
        for chart in ("ratios", "splits", "campaign", "time"):
            self.assertGreater(page.locator(f"#chart-{chart} svg[role=img][aria-label] > *").count(), 1, chart)
        self.assertEqual(page.locator("#chart-splits rect.off").evaluate_all(
            "bars => bars.filter(bar => bar.height.baseVal.value > 0).length"), 4, "what is beyond the ends is counted there")
        self.assertIn("at worst \u22121,230", page.locator("#chart-splits").inner_text())
        self.assertEqual(page.locator("#chart-campaign path.curve").count(), 3)
        self.assertIn("89,100 cases in 2 min 28 s showed 895 features and 4 findings", page.inner_text("#campaign"))
        self.assertEqual(page.locator("#benchmarks tr").last.inner_text().split(),
                         ["jsd/64", "224", "µs", "2", "G", "1.00"])
        plain = self.open(self.folder / "real" / "report.html")
        for part in ("splits", "campaign", "benchmarks"):
            self.assertEqual(plain.locator(f"#{part}").count(), 0, part)

    def test_is_worked_by_keys_alone(self) -> None:
        page = self.open(self.folder / "real" / "report.html")
        page.keyboard.press("Tab")
        self.assertTrue(page.locator(".skip").evaluate(
            "a => a === document.activeElement && a.getBoundingClientRect().left >= 0"), "the first stop skips to the findings")
        reached = []
        for _ in range(400):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("""() => {
              const at = document.activeElement;
              const seen = getComputedStyle(at).outlineStyle !== 'none' || at === document.body;
              return [at.id || at.className || at.localName, seen, at.matches('.finding > summary')];
            }"""))
            if reached[-1][2]:
                break
        self.assertTrue(reached[-1][2], "no card is reached")
        self.assertEqual([name for name, seen, _ in reached if not seen], [], "the focus is not seen")
        self.assertLessEqual({"search", "by-state", "order"}, {name for name, _, _ in reached})
        card = page.locator(".finding").first
        before = card.evaluate("card => card.open")
        page.keyboard.press("Enter")
        self.assertNotEqual(card.evaluate("card => card.open"), before)
        page.locator(".finding[open] .grid").first.focus()
        self.assertIn("arrow keys", page.locator(".finding[open] .grid").first.get_attribute("aria-label"))

    def test_ten_thousand_findings_are_written_opened_filtered_and_sorted_in_time(self) -> None:
        file = self.report_of("many", self.many(10_000))
        page = self.open(file)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        spent = page.evaluate("""() => ['search', 'by-property', 'order'].map((id) => {
            const control = document.getElementById(id);
            const values = {search: ['cause 7', 'fake', ''], order: ['ratio', 'count', '']}[id] || [control.options[1].value, ''];
            document.getElementById('search').dispatchEvent(new Event('input', {bubbles: true}));
            return Math.min(...[0, 1, 2, 3, 4].map(() => Math.max(...values.map((value) => {
              const start = performance.now();
              control.value = value;
              control.dispatchEvent(new Event('input', {bubbles: true}));
              void document.body.offsetHeight;
              return performance.now() - start;
            }))));
          })""")
        print(f"10,000 findings: {file.stat().st_size / 1e6:.1f} MB written in {self.seconds:.2f} s, first content "
              f"{paint:.0f} ms, search {spent[0]:.0f} ms, filter {spent[1]:.0f} ms, sort {spent[2]:.0f} ms", file=sys.stderr)
        self.assertEqual(self.complaints, [])
        self.assertLess(self.seconds, 2.0)
        self.assertLess(paint, 1000)
        self.assertLess(max(spent), 100)
        page.locator("#search").fill("cause 96")
        self.assertIn("in all", page.locator("#shown").inner_text())
        self.assertIn("cause 96", page.locator(".finding:visible").last.evaluate("card => card.textContent"))

    def test_a_thousand_findings_stay_below_two_megabytes(self) -> None:
        size = self.report_of("thousand", self.many(1000)).stat().st_size
        print(f"1,000 findings: {size / 1e6:.2f} MB", file=sys.stderr)
        self.assertLess(size, 2_000_000)
        self.assertLessEqual((self.folder / "thousand" / "summary.md").stat().st_size, 64 << 10)

    def test_hostile_texts_are_shown_and_do_nothing(self) -> None:
        texts = [before + text for text in HOSTILE for before in ("", "\"", "'>", "\">", "-->", "\\", "]]>", "}}")]
        texts.append("<" * (1 << 20))
        record = copy.deepcopy(self.real)
        record["findings"] = []
        for number, text in enumerate(texts):
            kind = self.real["findings"][0]
            finding = {key: text if isinstance(value, str) else value for key, value in kind.items()}
            record["findings"].append(dict(finding, state="red", fingerprint=f"{number} {text}", inputs=[text]))
            record["coverage"].append({"loss": text, "trait": text, "cases": 1})
            record["splits"].append({"loss": text, "implementation": text, "dtype": text, "off_by": {text: 1}, "worst": 1.0,
                                     "worst_ordinal": 0, "worst_case": text, "worst_split": text})
            record["troubles"].append(text)
            record["subjects"].append({**record["subjects"][0], "name": text, "loss": text, "file": text, "twin": ""})
            record["cells"].append({**record["cells"][0], "implementation": text, "loss": text, "reasons": {text: 1}})
        record["environment"] = {key: text if isinstance(text, (bool, int)) else HOSTILE[0]
                                 for key, text in record["environment"].items() if key != "dtypes"} | {"dtypes": HOSTILE}
        benchmarks = {"benchmarks": [{"name": text, "cpu_time": 1.0, "time_unit": "ns"} for text in texts]}
        page = self.open(self.report_of("hostile", record, record, benchmarks=benchmarks))
        while page.locator("#more").is_visible():
            page.locator("#more").click()
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        page.mouse.move(400, 400)
        self.assertEqual(self.complaints, [])
        self.assertIsNone(page.evaluate("window.ran ?? null"))
        self.assertEqual(page.evaluate("document.querySelectorAll('script').length"), 3)
        self.assertEqual(page.evaluate("document.querySelectorAll('iframe, img, base, object, embed, main style').length"), 0)
        self.assertEqual(page.evaluate("document.querySelectorAll('.finding').length"), len(texts))
        whole = page.evaluate("document.body.textContent")
        for text in texts:
            if len(text) < 2000 and text.isprintable():
                self.assertIn(text, whole)
        self.assertIn("{202e} reversed {2066}", whole)
        self.assertIn("(1,048,576 bytes)", whole)


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"left out: {reason}")
    else:
        unittest.main()
