// SPDX-License-Identifier: Apache-2.0
// The charts. Each has a table with the same numbers beside it, so nothing is said by a drawing alone.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const number = (ratio) => (ratio === "inf" ? Infinity : ratio);

const drawCharts = (() => {
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
    const most = data.most_allowed, low = 1e-4, finite = rows.map((r) => r.ratio).filter((r) => isFinite(r));
    const high = Math.max(10, d3.max(finite) || 10) * 2;
    const x = d3.scale.log().domain([low, high]).range([left, chart.width - 46]).clamp(true);
    const at = (ratio) => (ratio === Infinity ? chart.width - 22 : x(Math.max(low, ratio)));
    const lane = (r) => top + band * losses.indexOf(r.loss) + 7 + 9 * dtypes.indexOf(r.dtype);
    const floor = top + band * losses.length;
    const {svg} = chart;
    svg.selectAll(".band").data(losses).enter().append("rect").attr("class", "band").attr("x", left)
      .attr("width", chart.width - left).attr("y", (_, i) => top + band * i + 1).attr("height", band - 2);
    svg.append("rect").attr("class", "beyond").attr("x", x(most)).attr("width", chart.width - x(most))
      .attr("y", top).attr("height", floor - top);
    svg.append("line").attr("class", "bound").attr("x1", x(most)).attr("x2", x(most)).attr("y1", top - 6).attr("y2", floor);
    svg.append("text").attr("x", x(most)).attr("y", top - 12).attr("text-anchor", "middle").text("allowed");
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

  // ---- split bias: a row for each implementation and dtype, what is lost to the left, what is added to the right ----
  function drawSplits() {
    const {decades, rows} = data.splits;
    if (rows.length === 0) return;
    const height = 64, top = 8, bottom = 40, zero = decades.indexOf("0");
    const chart = canvas("chart-splits", top + bottom + height * rows.length,
      "Splits by how far they move the loss; the table below has the numbers and the worst split of each");
    if (!chart) return;
    const narrow = chart.width < 560;
    const left = narrow ? 8 : Math.min(250, chart.width * .28), right = narrow ? 8 : 150;
    const x = d3.scale.ordinal().domain(decades).rangeRoundBands([left, chart.width - right], .15);
    const floor = top + height * rows.length;
    const {svg} = chart;
    rows.forEach(([implementation, loss, dtype, counts, worst, split], i) => {
      const base = top + height * (i + 1) - 6, most = d3.max(counts);
      const y = d3.scale.sqrt().domain([0, most]).range([0, height - (narrow ? 40 : 24)]);
      const row = svg.append("g");
      row.append("line").attr("class", "base").attr("x1", left).attr("x2", chart.width - right).attr("y1", base).attr("y2", base);
      row.selectAll("rect").data(counts).enter().append("rect").attr("class", (_, j) => (j === zero ? "bar calm" : "bar off"))
        .attr("x", (_, j) => x(decades[j])).attr("width", x.rangeBand()).attr("y", (n) => base - y(n)).attr("height", y)
        .append("title").text((n, j) => `${n} splits at ${decades[j]}`);
      row.selectAll(".n").data(counts).enter().append("text").attr("class", "note").attr("text-anchor", "middle")
        .attr("x", (_, j) => x(decades[j]) + x.rangeBand() / 2).attr("y", (n) => base - y(n) - 3)
        .text((n) => (n && (!narrow || n === most) ? whole(n) : ""));
      const name = `${implementation}, ${dtype}`, off = `at worst ${signed(number(worst))}`;
      if (narrow) {
        row.append("text").attr("x", left).attr("y", base - height + 18).text(shortened(`${name}: ${off}`, chart.width / 7));
      } else {
        row.append("text").attr("x", left - 12).attr("y", base - 12).attr("text-anchor", "end").text(shortened(name, left / 6.8));
        row.append("text").attr("x", left - 12).attr("y", base + 3).attr("text-anchor", "end").attr("class", "note").text(loss);
        row.append("text").attr("x", chart.width - right + 12).attr("y", base - 4).attr("class", "worst").text(off);
      }
      row.append("title").text(`${name}: ${off}, ${split}`);
    });
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${floor})`)
      .call(d3.svg.axis().scale(x).orient("bottom").tickSize(0).tickPadding(6)
        .tickFormat((d, i) => (i % (narrow ? 7 : 1) === 0 ? named(d) : "")));
    svg.append("text").attr("class", "note").attr("x", left).attr("y", floor + 34).text("reports less");
    svg.append("text").attr("class", "note").attr("x", chart.width - right).attr("y", floor + 34).attr("text-anchor", "end")
      .text("reports more");
  }

  const signed = (off) => (off > 0 ? "+" : "\u2212") + (!isFinite(off) ? "∞"
    : Math.abs(off) < 1e-3 || Math.abs(off) >= 1e6 ? Math.abs(off).toExponential(1).replace("+", "")
      : Number(Math.abs(off).toPrecision(3)).toLocaleString("en"));

  // "-1e-2" as people write it.
  function named(decade) {
    if (decade === "0") return "0";
    const value = Math.abs(Number(decade));
    return (decade[0] === "-" ? "\u2212" : "+") + (value >= .001 ? value : value.toExponential(0));
  }

  // ---- a campaign: curves over one time ----
  function drawCampaign() {
    const points = [[0, 0, 0, 0, 0], ...data.campaign];
    if (points.length < 3) return;
    const panel = 96, top = 18, curves = ["cases", "features", "findings"];
    if (points.some((p) => p[4] > 0)) curves.push("MiB resident");
    const chart = canvas("chart-campaign", (panel + 14) * curves.length + top + 20,
      "Cases, features, findings and memory over time; the table below has the numbers");
    if (!chart) return;
    const left = 78, right = chart.width - 16, end = points[points.length - 1][0];
    const [unit, name] = end >= 7200 ? [3600, "hours"] : end >= 120 ? [60, "minutes"] : [1, "seconds"];
    const x = d3.scale.linear().domain([0, end / unit]).range([left, right]);
    const {svg} = chart;
    curves.forEach((curve, i) => {
      const floor = top + (panel + 14) * i + panel;
      const y = d3.scale.linear().domain([0, Math.max(1, d3.max(points, (p) => p[i + 1]))]).range([floor, floor - panel + 22]);
      const line = d3.svg.line().x((p) => x(p[0] / unit)).y((p) => y(p[i + 1])).interpolate(curve === "findings" ? "step-after" : "linear");
      svg.append("text").attr("x", left).attr("y", floor - panel + 12).text(curve);
      svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`)
        .call(d3.svg.axis().scale(y).orient("left").ticks(3).tickSize(left - right).tickFormat(whole));
      svg.append("path").attr("class", `curve ${curve.split(" ")[0].toLowerCase()}`).attr("d", line(points));
      svg.append("g").attr("class", "axis").attr("transform", `translate(0,${floor})`)
        .call(d3.svg.axis().scale(x).orient("bottom").ticks(Math.max(2, Math.floor(chart.width / 110))).tickSize(4)
          .tickFormat(i === curves.length - 1 ? null : () => ""));
    });
    svg.append("text").attr("class", "note").attr("x", right).attr("y", top + (panel + 14) * curves.length + 18)
      .attr("text-anchor", "end").text(name);
  }

  const whole = (count) => (count === Math.round(count) ? d3.format(",")(count) : "");

  return () => {
    drawRatios();
    drawSplits();
    drawKills();
    drawCampaign();
    drawTime();
  };
})();
