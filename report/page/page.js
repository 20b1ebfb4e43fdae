// SPDX-License-Identifier: Apache-2.0
// The page reads without this script. It filters and sorts the cards, draws the charts, copies commands and shows
// the exact value of the cell of a drawing under the pointer or the cursor keys.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const number = (ratio) => (ratio === "inf" ? Infinity : ratio);

  // ---- cards: filter, sort, a page at a time ----
  const [STATE, PROPERTY, IMPLEMENTATION, LOSS, GRADE, COUNT, RATIO] = [0, 1, 2, 3, 4, 5, 6];
  const PAGE = 100;
  const columns = {state: STATE, property: PROPERTY, implementation: IMPLEMENTATION, loss: LOSS, grade: GRADE};
  const list = byId("cards");
  let shown = PAGE;
  let visible = [];  // cards in the document
  let order = [];    // of all cards, by number

  const cards = list ? Array.from(list.children) : [];
  const words = new Array(cards.length);  // what a search looks through, made when first needed

  const wordsOf = (i) => (words[i] ??= cards[i].textContent.toLowerCase());

  function matches() {
    const wanted = Object.entries(columns).map(([key, column]) => [column, byId("by-" + key).value])
      .filter(([, value]) => value);
    const terms = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    return order.filter((i) => wanted.every(([column, value]) => data.findings[i][column] === value) &&
      terms.every((term) => wordsOf(i).includes(term)));
  }

  // Only what is shown is in the document: a layout never sees thousands of cards.
  function show() {
    const found = matches();
    visible = found.slice(0, shown).map((i) => cards[i]);
    list.replaceChildren(...visible);
    byId("shown").value = `${visible.length.toLocaleString("en")} of ${found.length.toLocaleString("en")} shown` +
      (found.length < cards.length ? `, ${cards.length.toLocaleString("en")} in all` : "");
    byId("more").hidden = visible.length === found.length;
  }

  function sort() {
    const by = byId("order").value;
    order = cards.map((_, i) => i);
    const rows = data.findings;
    if (by === "ratio") order.sort((a, b) => number(rows[b][RATIO]) - number(rows[a][RATIO]) || a - b);
    if (by === "count") order.sort((a, b) => rows[b][COUNT] - rows[a][COUNT] || a - b);
    if (by in columns) {
      const column = columns[by];
      order.sort((a, b) => (rows[a][column] < rows[b][column] ? -1 : rows[a][column] > rows[b][column] ? 1 : a - b));
    }
  }

  function refresh() {
    shown = PAGE;
    sort();
    show();
  }

  function prepareCards() {
    for (const [key, column] of Object.entries(columns)) {
      const values = [...new Set(data.findings.map((row) => row[column]))];
      if (key !== "state") values.sort();
      for (const value of values) byId("by-" + key).add(new Option(value, value));
    }
    byId("toolbar").hidden = false;
    byId("toolbar").addEventListener("input", refresh);
    byId("toolbar").addEventListener("submit", (event) => event.preventDefault());
    byId("more").addEventListener("click", () => { shown += PAGE; show(); });
    refresh();
  }

  // ---- links into what is folded ----
  function unfold() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && (byId(id) || cards.find((card) => card.id === id));
    if (!target) return;
    if (!target.isConnected) list.prepend(target);
    for (let at = target; at; at = at.parentElement) if (at.localName === "details") at.open = true;
    if (target.localName === "details") target.scrollIntoView();
  }

  // ---- copy ----
  function pytestOf(card) {
    const command = card.querySelector(".repro code").textContent;
    const row = data.findings[cards.indexOf(card)];
    const name = `${row[PROPERTY]}_of_${row[IMPLEMENTATION]}`.replace(/\W+/g, "_");
    return `import shlex\nimport subprocess\n\n\ndef test_${name}():\n` +
      `    """${card.querySelector(".statement").textContent.replace(/["\\]/g, "'")}"""\n` +
      `    command = ${JSON.stringify(command)}\n` +
      `    done = subprocess.run(shlex.split(command), capture_output=True, text=True)\n` +
      `    assert done.returncode == 0, done.stdout + done.stderr\n`;
  }

  async function copy(button, text) {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // not everywhere may a page use the clipboard
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  }

  function addButtons(card) {
    const line = card.querySelector(".repro");
    if (!line || line.querySelector("button")) return;
    for (const [label, text] of [["Copy command", () => line.querySelector("code").textContent],
      ["Copy as pytest", () => pytestOf(card)]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => copy(button, text()));
      line.append(button);
    }
  }

  // ---- drawings: the exact value ----
  function readout(cell) {
    const drawing = cell.closest(".drawing");
    drawing.querySelector(".cursor")?.classList.remove("cursor");
    cell.classList.add("cursor");
    const field = cell.closest("figure").querySelector("figcaption").firstChild.textContent.trim();
    drawing.querySelector(".readout").textContent = field + cell.title;
  }

  function walk(event) {
    const step = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}[event.key];
    const table = event.target.closest(".grid");
    if (!step || !table) return;
    event.preventDefault();
    const at = table.querySelector(".cursor");
    const row = at ? at.parentElement.rowIndex + step[0] : 0;
    const cell = table.rows[row]?.cells[at ? at.cellIndex + step[1] : 0];
    if (cell) readout(cell);
  }

  function prepareDrawing(card) {
    for (const table of card.querySelectorAll(".grid")) table.tabIndex = 0;
    card.querySelector(".readout")?.setAttribute("aria-live", "polite");
  }

  // ---- charts ----
  const DTYPES = ["f64", "f32", "f16", "bf16"];

  function canvas(id, height, label) {
    const figure = byId(id);
    if (!figure) return null;
    figure.hidden = false;
    figure.textContent = "";
    const width = Math.max(320, figure.clientWidth);
    const svg = d3.select(figure).append("svg").attr("viewBox", `0 0 ${width} ${height}`)
      .attr("role", "img").attr("aria-label", label);
    return {svg, width, height};
  }

  function drawRatios() {
    const rows = data.ratios.map((r) => ({loss: r[0], implementation: r[1], dtype: r[2], property: r[3],
      ratio: number(r[4]), id: r[5]}));
    if (rows.length === 0) return;
    const losses = [...new Set(rows.map((r) => r.loss))];
    const dtypes = DTYPES.filter((d) => rows.some((r) => r.dtype === d));
    const band = Math.max(24, 9 * dtypes.length + 6), top = 40, bottom = 34;
    const chart = canvas("chart-ratios", top + bottom + band * losses.length,
      "Error ratios by loss and dtype; the table below names the worst of each");
    if (!chart) return;
    const left = Math.min(190, chart.width * .34);
    const low = 1e-4, finite = rows.map((r) => r.ratio).filter((r) => isFinite(r));
    const high = Math.max(10, d3.max(finite) || 10) * 2;
    const x = d3.scale.log().domain([low, high]).range([left, chart.width - 46]).clamp(true);
    const at = (ratio) => (ratio === Infinity ? chart.width - 22 : x(Math.max(low, ratio)));
    const lane = (r) => top + band * losses.indexOf(r.loss) + 7 + 9 * dtypes.indexOf(r.dtype);
    const floor = top + band * losses.length;
    const {svg} = chart;
    svg.selectAll(".band").data(losses).enter().append("rect").attr("class", "band").attr("x", left)
      .attr("width", chart.width - left).attr("y", (_, i) => top + band * i + 1).attr("height", band - 2);
    svg.append("rect").attr("class", "beyond").attr("x", x(1)).attr("width", chart.width - x(1))
      .attr("y", top).attr("height", floor - top);
    svg.append("line").attr("class", "bound").attr("x1", x(1)).attr("x2", x(1)).attr("y1", top - 6).attr("y2", floor);
    svg.append("text").attr("x", x(1)).attr("y", top - 12).attr("text-anchor", "middle").text("bound");
    svg.append("text").attr("class", "note").attr("x", chart.width - 22).attr("y", floor + 20)
      .attr("text-anchor", "middle").text("∞");
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${floor})`)
      .call(d3.svg.axis().scale(x).orient("bottom").tickSize(4).tickValues(decades(low, high, chart.width))
        .tickFormat((v) => (v <= low ? "less" : v >= .01 && v < 1e4 ? d3.format(",")(v) : v.toExponential(0).replace("+", ""))));
    svg.selectAll(".name").data(losses).enter().append("text").attr("x", left - 8).attr("text-anchor", "end")
      .attr("y", (_, i) => top + band * (i + .5) + 4).text((d) => shortened(d, left / 6.6));
    svg.selectAll("circle").data(rows).enter().append("circle").attr("class", (r) => r.dtype).attr("r", 3.5)
      .attr("cx", (r) => at(r.ratio)).attr("cy", lane).append("title")
      .text((r) => `${r.loss}, ${r.implementation}, ${r.dtype}, ${r.property}: ${r.ratio}, case ${r.id}`);
    legend(svg, dtypes, left);
  }

  function decades(low, high, width) {
    const all = d3.range(Math.round(Math.log10(low)), Math.log10(high));
    const every = Math.ceil(all.length / (width / 70));
    return all.filter((e) => e % every === 0).map((e) => Math.pow(10, e));
  }

  const shortened = (text, most) => (text.length > most ? text.slice(0, Math.max(3, most - 1)) + "…" : text);

  function legend(svg, dtypes, left) {
    const key = svg.selectAll(".key").data(dtypes).enter().append("g")
      .attr("transform", (_, i) => `translate(${left + 56 * i},14)`);
    key.append("circle").attr("class", (d) => d).attr("r", 4).attr("cx", 4).attr("cy", -4);
    key.append("text").attr("x", 12).text((d) => d);
  }

  function drawKills() {
    const bins = [["1", 1, 1], ["2", 2, 2], ["3-4", 3, 4], ["5-8", 5, 8], ["9-16", 9, 16], ["17-64", 17, 64],
      ["more", 65, Infinity]]
      .map(([label, from, to]) => ({label, count: d3.sum(data.kills.filter((k) => k[0] >= from && k[0] <= to), (k) => k[1])}));
    const chart = data.kills.length && canvas("chart-kills", 190, "How many hostile cases it took to catch a variant");
    if (!chart) return;
    const width = Math.min(chart.width, 640);
    const x = d3.scale.ordinal().domain(bins.map((b) => b.label)).rangeRoundBands([10, width - 10], .25);
    const y = d3.scale.linear().domain([0, d3.max(bins, (b) => b.count)]).range([140, 24]);
    const {svg} = chart;
    svg.selectAll(".bar").data(bins).enter().append("rect").attr("class", "bar").attr("x", (b) => x(b.label))
      .attr("width", x.rangeBand()).attr("y", (b) => y(b.count)).attr("height", (b) => 140 - y(b.count));
    svg.selectAll(".count").data(bins).enter().append("text").attr("text-anchor", "middle")
      .attr("x", (b) => x(b.label) + x.rangeBand() / 2).attr("y", (b) => y(b.count) - 5).text((b) => b.count || "");
    svg.append("g").attr("class", "axis").attr("transform", "translate(0,140)")
      .call(d3.svg.axis().scale(x).orient("bottom").tickSize(0).tickPadding(8));
    svg.append("text").attr("class", "note").attr("x", 10).attr("y", 182).text("hostile cases until it was noticed");
  }

  function drawTime() {
    const seconds = d3.map();
    for (const [loss, implementation, , , spent] of data.timings) {
      const key = `${implementation} (${loss})`;
      seconds.set(key, (seconds.get(key) || 0) + spent);
    }
    const rows = seconds.entries().sort((a, b) => b.value - a.value).slice(0, 15);
    const chart = rows.length && canvas("chart-time", rows.length * 24 + 34, "Seconds by implementation, the most first");
    if (!chart) return;
    const left = Math.min(330, chart.width * .45);
    const x = d3.scale.linear().domain([0, rows[0].value]).range([left, chart.width - 60]);
    const {svg} = chart;
    const row = svg.selectAll(".row").data(rows).enter().append("g").attr("transform", (_, i) => `translate(0,${i * 24})`);
    row.append("rect").attr("class", "bar").attr("x", left).attr("y", 4).attr("height", 16).attr("width", (d) => x(d.value) - left);
    row.append("text").attr("x", left - 8).attr("y", 16).attr("text-anchor", "end").text((d) => shortened(d.key, left / 6.6));
    row.append("text").attr("class", "note").attr("x", (d) => x(d.value) + 6).attr("y", 16).text((d) => d.value.toFixed(1) + " s");
  }

  function draw() {
    drawRatios();
    drawKills();
    drawTime();
  }

  if (cards.length) prepareCards();
  document.addEventListener("toggle", (event) => {
    if (!event.target.open || !event.target.classList.contains("finding")) return;
    addButtons(event.target);
    prepareDrawing(event.target);
  }, true);
  cards.filter((card) => card.open).forEach((card) => { addButtons(card); prepareDrawing(card); });
  document.addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.(".grid td");
    if (cell) readout(cell);
  });
  document.addEventListener("keydown", walk);
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => visible.forEach((card) => { card.open = true; }));
  let width = 0;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  draw();
  unfold();
})();
