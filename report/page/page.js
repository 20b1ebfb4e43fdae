// SPDX-License-Identifier: Apache-2.0
// The page reads without this script. It filters and sorts the cards, copies commands, shows the exact value of the
// cell of a drawing under the pointer or the cursor keys, and has the charts drawn (charts.js, which stands before it).
(() => {
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
  const said = document.body.appendChild(document.createElement("p"));  // for those who do not see the button change
  said.className = "sr";
  said.setAttribute("role", "status");

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
    said.textContent = label.replace("Copy", "Copied");
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
    for (const table of card.querySelectorAll(".grid")) {
      table.tabIndex = 0;
      const field = table.closest("figure").querySelector("figcaption").textContent;
      table.setAttribute("aria-label", `${field}; arrow keys go from value to value`);
    }
    card.querySelector(".readout")?.setAttribute("aria-live", "polite");
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
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawCharts(); } });
  drawCharts();
  unfold();
})();
