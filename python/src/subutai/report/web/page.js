// SPDX-License-Identifier: LGPL-2.1-or-later
// The page's script: it draws the pictures, and shows one object in all of them when it is selected. Plotly and
// DataTables do the drawing; here is what belongs to this page. The data stand in the page as JSON; the timeline's cells
// are packed (zlib, base64), a byte or two each.

const page = JSON.parse(document.getElementById("page").textContent);
const CONFIG = { displayModeBar: false };
const FONT = { family: "system-ui, sans-serif", size: 13, color: "#1a1a1a" };
const NO_OBJECT = 0xffff;
const ABSENT = 0, SECTION = 2, JOIN = 3;
const HELD = 1, WAITED = 2;
const MAX_LABELS = 40;
const OTHER = { colour: "#dcdcdc", label: "alive, with other things" };

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function duration(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (Math.abs(ns) >= size) return `${Number((ns / size).toPrecision(4))} ${unit}`;
  return `${Math.round(ns)} ns`;
}

// Steps of colour, so that a whole number has its own.
function scale(colours) {
  return colours.flatMap((colour, i) => [[i / colours.length, colour], [(i + 1) / colours.length, colour]]);
}

// The layout of a picture that is as wide as its element, which is as high as the layout.
function sized(element, layout) {
  element.style.height = `${layout.height}px`;
  return { ...layout, width: element.clientWidth };
}

// The picture stays so when the window changes, and when its process is shown again. Plotly's own way (`responsive`)
// forgets pictures that are hidden then, and those that get another height too.
const SETTLED_MS = 100; // so long without a change: a window that is being drawn wider does not draw all pictures each time
function follow(element, height) {
  let waits;
  new ResizeObserver(() => {
    clearTimeout(waits);
    waits = setTimeout(() => {
      const { layout, clientWidth } = element;
      if (clientWidth === 0 || (clientWidth === layout.width && height() === layout.height)) return;
      const { width, height: high } = sized(element, { height: height() });
      Plotly.relayout(element, { width, height: high });
    }, SETTLED_MS);
  }).observe(element);
}

// In a narrow window a legend has more lines: the picture is as much higher, and the legend is whole.
const LEGEND = { swatch: 60, letter: 7, line: 20, lines: 2 }; // pixels; and the lines that the layout has room for
function fitted(element, { data, layout }) {
  const names = data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name.length);
  if (names.length < 2) return layout;
  const columns = Math.max(1, Math.floor(element.clientWidth / (LEGEND.swatch + LEGEND.letter * Math.max(...names))));
  const more = Math.max(0, Math.ceil(names.length / columns) - LEGEND.lines);
  return { ...layout, height: layout.height + LEGEND.line * more, legend: { ...layout.legend, maxheight: 1 } };
}

class Timeline {
  constructor(article, data, select) {
    this.article = article;
    this.data = data.timeline;
    this.objects = data.objects;
    this.select = select;
    this.element = article.querySelector(".timeline");
    this.readout = article.querySelector(".readout");
    this.object = null;
    this.cursor = null;
    this.colours = page.activities.map((name) => page.colours[name] ?? "#ffffff");
  }

  async begin() {
    const t = this.data;
    [this.activity, this.of, this.layer] = await Promise.all([
      unpacked(t.activity).then((b) => new Uint8Array(b)),
      unpacked(t.object).then((b) => new Uint16Array(b)),
      unpacked(t.layer).then((b) => new Uint8Array(b)),
    ]);
    this.layerOf = new Map(t.layers.map((object, i) => [object, i]));
    await this.draw();
    follow(this.element, () => this.element.layout.height);
    this.element.on("plotly_hover", ({ points: [p] }) => this.say(this.cellAt(p)));
    this.element.on("plotly_click", ({ points: [p] }) => this.choose(this.cellAt(p)));
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  rows(n, at) {
    return Array.from({ length: this.data.lanes.length }, (_, lane) =>
      Uint8Array.from({ length: n }, (_, cell) => at(lane, cell)));
  }

  // What a cell shows, how many cells a lane has, and the meaning of the numbers: for all objects, and for one.
  all() {
    const n = this.data.cells;
    const used = new Set(this.activity);
    return {
      n,
      z: this.rows(n, (lane, cell) => this.activity[lane * n + cell]),
      colours: this.colours,
      legend: page.activities.flatMap((name, i) =>
        i !== ABSENT && used.has(i) ? [{ colour: this.colours[i], label: page.labels[name] }] : []),
    };
  }

  one(object) {
    const { cells, layerCells, lanes } = this.data;
    const type = this.objects[object]?.type;
    const layer = this.layerOf.get(object);
    const code = this.data.objects.indexOf(object);
    const n = layer === undefined ? cells : layerCells;
    const at = (lane, cell) => {
      const main = lane * cells + Math.min(cells - 1, Math.floor(((cell + 0.5) * cells) / n));
      if (layer === undefined) {
        if (code >= 0 && this.of[main] === code) return this.activity[main] === SECTION ? 2 : 3;
      } else {
        const bits = this.layer[(layer * lanes.length + lane) * n + cell];
        if (bits & WAITED) return 3;
        if (bits & HELD) return 2;
      }
      return this.activity[main] === ABSENT ? 0 : 1;
    };
    const waiting = page.colours[type] ?? page.colours.mutex;
    return {
      n,
      z: this.rows(n, at),
      colours: ["#ffffff", OTHER.colour, page.colours.section, waiting],
      legend: [
        { colour: waiting, label: page.labels[type] ?? "waiting" },
        ...(["mutex", "rwlock", "spin"].includes(type) ? [{ colour: page.colours.section, label: "held" }] : []),
        OTHER,
      ],
    };
  }

  async draw() {
    const { from, to, lanes } = this.data;
    const shown = this.object === null ? this.all() : this.one(this.object);
    const step = Math.max(1, Math.ceil(lanes.length / MAX_LABELS));
    const ticks = lanes.flatMap((_, i) => (i % step === 0 ? [i] : []));
    const short = (name) => (name.length > 26 ? `${name.slice(0, 12)}…${name.slice(-13)}` : name);
    const seconds = (to - from) / 1e9;
    const trace = {
      type: "heatmap",
      z: shown.z,
      x0: from / 1e9 + seconds / shown.n / 2,
      dx: seconds / shown.n,
      y0: 0,
      dy: 1,
      zmin: -0.5, // a number is the middle of its step of colour, which is safe from rounding
      zmax: shown.colours.length - 0.5,
      zauto: false,
      colorscale: scale(shown.colours),
      showscale: false,
      hoverinfo: "none",
      ygap: lanes.length <= 60 ? 1 : 0,
    };
    const layout = {
      font: FONT,
      height: Math.max(160, Math.min(1000, 70 + lanes.length * (lanes.length <= 60 ? 20 : 2))),
      margin: { l: 10, r: 10, t: 5, b: 40 },
      xaxis: {
        title: { text: "time since the trace began" },
        range: this.range ?? [from / 1e9, to / 1e9],
        tickformat: "~s",
        ticksuffix: "s",
        automargin: true,
        zeroline: false,
        showgrid: false,
      },
      yaxis: {
        autorange: "reversed",
        fixedrange: true,
        tickvals: ticks,
        ticktext: ticks.map((i) => plain(short(lanes[i]))),
        automargin: true,
        zeroline: false,
        showgrid: false,
      },
      dragmode: "zoom",
      plot_bgcolor: "#ffffff",
      shapes: this.cursorShape(),
    };
    this.legend(shown.legend);
    await Plotly.react(this.element, [trace], sized(this.element, layout), CONFIG);
  }

  legend(entries) {
    this.article.querySelector(".colours").replaceChildren(...entries.map(({ colour, label }) => {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = colour;
      item.append(swatch, label);
      return item;
    }));
  }

  async show(object) {
    this.range = this.element.layout.xaxis.range.slice();
    this.object = object;
    const o = this.objects[object];
    const text = object === null
      ? "Each cell shows what took most of its time."
      : `Only ${o?.name ?? `object #${object}`}: a cell is coloured if it was waited for or held in it, if only for a moment. ${o?.said ?? ""}`;
    this.article.querySelector(".selected").textContent = text;
    await this.draw();
  }

  // A place in the picture as a cell of the whole timeline.
  cellAt(point) {
    const { from, to, cells } = this.data;
    const cell = Math.floor(((point.x * 1e9 - from) / (to - from)) * cells);
    return { lane: point.y, cell: Math.max(0, Math.min(cells - 1, cell)) };
  }

  objectAt({ lane, cell }) {
    const code = this.of[lane * this.data.cells + cell];
    return code === NO_OBJECT ? null : this.data.objects[code];
  }

  say(at) {
    const { from, to, cells, lanes } = this.data;
    const activity = this.activity[at.lane * cells + at.cell];
    const object = this.objectAt(at);
    const what = activity === ABSENT ? "not there" : page.labels[page.activities[activity]];
    const which = object === null || activity === JOIN ? "" : `: ${this.objects[object]?.name ?? `object #${object}`}`;
    const when = duration(from + ((to - from) * (at.cell + 0.5)) / cells);
    this.readout.textContent = `${lanes[at.lane]}, at ${when}: ${what}${which}`;
  }

  choose(at) {
    this.say(at);
    const object = this.objectAt(at);
    if (object !== null) this.select(object === this.object ? null : object);
  }

  cursorShape() {
    if (this.cursor === null) return [];
    const { from, to, cells } = this.data;
    const width = (to - from) / cells / 1e9;
    const x0 = from / 1e9 + this.cursor.cell * width;
    const { lane } = this.cursor;
    return [{ type: "rect", x0, x1: x0 + width, y0: lane - 0.5, y1: lane + 0.5, line: { color: "#000000", width: 2 } }];
  }

  move(lanes, cells) {
    const { from, to } = this.data;
    const [first, last] = this.element.layout.xaxis.range.map((s) => this.cellAt({ x: s, y: 0 }).cell);
    const step = Math.max(1, Math.round((last - first) / 100));
    const was = this.cursor ?? { lane: 0, cell: Math.round((first + last) / 2) };
    this.cursor = {
      lane: Math.max(0, Math.min(this.data.lanes.length - 1, was.lane + lanes)),
      cell: Math.max(first, Math.min(last, was.cell + cells * step)),
    };
    Plotly.relayout(this.element, { shapes: this.cursorShape() });
    this.say(this.cursor);
  }

  zoom(how) {
    const all = [this.data.from / 1e9, this.data.to / 1e9];
    const [a, b] = this.element.layout.xaxis.range;
    const length = b - a, middle = (a + b) / 2;
    const half = { in: length / 4, out: length, left: length / 2, right: length / 2 }[how];
    const centre = { in: middle, out: middle, left: a, right: b }[how];
    let range = all;
    if (how !== "all" && half * 2 < all[1] - all[0]) {
      const begin = Math.max(all[0], Math.min(all[1] - 2 * half, centre - half));
      range = [begin, begin + 2 * half];
    }
    Plotly.relayout(this.element, { "xaxis.range": range });
  }

  key(event) {
    const does = {
      ArrowLeft: () => this.move(0, -1),
      ArrowRight: () => this.move(0, 1),
      ArrowUp: () => this.move(-1, 0),
      ArrowDown: () => this.move(1, 0),
      "+": () => this.zoom("in"),
      "-": () => this.zoom("out"),
      0: () => this.zoom("all"),
      Enter: () => this.cursor !== null && this.choose(this.cursor),
      Escape: () => this.select(null),
    }[event.key];
    if (does === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does();
  }
}

// Waits and holds by length, of one object or of all: octaves, as steps.
function histogram(article, objects, object) {
  const chosen = object === null ? Object.values(objects) : [objects[object]].filter(Boolean);
  const traces = [["wait", "waits", page.colours.mutex, "solid"], ["hold", "holds", page.colours.section, "dash"]].flatMap(
    ([key, name, colour, dash]) => {
      const counts = new Map();
      for (const o of chosen) for (const [bucket, n] of o[key] ?? []) counts.set(bucket, (counts.get(bucket) ?? 0) + n);
      if (counts.size === 0) return [];
      const buckets = [...counts.keys()], low = Math.min(...buckets), high = Math.max(...buckets);
      const x = [], y = [], text = [];
      for (let b = low; b <= high; b++) {
        x.push(2 ** (b + 0.5) / 1e9);
        y.push(counts.get(b) ?? 0);
        text.push(`${duration(2 ** b)} to ${duration(2 ** (b + 1))}: ${y.at(-1)}`);
      }
      return [{
        type: "scatter", mode: "lines+markers", name, x, y, text, line: { shape: "hvh", color: colour, width: 2, dash },
        marker: { size: 5, color: colour }, hovertemplate: "%{text}<extra>%{fullData.name}</extra>",
      }];
    });
  const visible = traces.length > 0;
  const layout = {
    font: FONT, height: visible ? 300 : 80, margin: { l: 10, r: 10, t: 10, b: visible ? 40 : 10 }, showlegend: true,
    legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 },
    xaxis: { visible, type: "log", title: { text: "length" }, tickformat: "~s", ticksuffix: "s", automargin: true, dtick: 1, gridcolor: "#d9d9d9" },
    yaxis: { visible, type: "log", title: { text: "how many" }, automargin: true, dtick: 1, gridcolor: "#d9d9d9", exponentformat: "none" },
    annotations: visible ? [] : [{ text: "no waits and no holds", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }],
  };
  const element = article.querySelector(".histogram");
  return Plotly.react(element, traces, sized(element, layout), CONFIG);
}

class Process {
  constructor(article) {
    this.article = article;
    this.data = JSON.parse(article.querySelector(".data").textContent);
    this.chooser = article.querySelector(".chooser");
  }

  async begin() {
    if (this.begun) return;
    this.begun = true;
    this.timeline = new Timeline(this.article, this.data, (object) => this.select(object));
    this.chooser.addEventListener("change", () => this.select(this.chooser.value === "" ? null : Number(this.chooser.value)));
    this.article.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.dataset.zoom) this.timeline.zoom(button.dataset.zoom);
      if (button?.dataset.object) this.click(Number(button.dataset.object));
    });
    for (const table of this.article.querySelectorAll("table")) sortable(table);
    await this.timeline.begin();
    await histogram(this.article, this.data.objects, null);
    const lengths = this.article.querySelector(".histogram");
    follow(lengths, () => lengths.layout.height);
    for (const element of this.article.querySelectorAll("[data-figure]")) await this.picture(element);
    this.article.dataset.ready = "yes";
  }

  async picture(element) {
    const figure = this.data.figures[element.dataset.figure];
    await Plotly.newPlot(element, figure.data, sized(element, fitted(element, figure)), CONFIG);
    follow(element, () => fitted(element, figure).height);
    element.on("plotly_click", ({ points: [point] }) => {
      const of = element.dataset.figure === "waits" ? figure.data[0].node.customdata[point.index] : point.customdata;
      if (element.dataset.figure === "waits" && point.source !== undefined) return; // a link, not a node
      if (typeof of === "number") this.click(of);
    });
  }

  // A button shows its object, and takes the reader to the timeline; once more: all objects again.
  click(object) {
    const was = this.article.dataset.object;
    this.select(was === String(object) ? null : object);
    this.article.querySelector(".timeline").scrollIntoView({ block: "nearest" });
  }

  async select(object) {
    if (object === null) delete this.article.dataset.object;
    else this.article.dataset.object = object;
    this.chooser.value = object === null ? "" : String(object);
    this.article.querySelector(".selected-name").textContent =
      object === null ? "all objects" : (this.data.objects[object]?.name ?? `object #${object}`);
    this.mark();
    await Promise.all([this.timeline.show(object), histogram(this.article, this.data.objects, object)]);
  }

  mark() {
    for (const button of this.article.querySelectorAll("button.object"))
      button.setAttribute("aria-pressed", String(button.dataset.object === this.article.dataset.object));
  }
}

let DataTable = null;
function sortable(table) {
  const by = Number(table.dataset.sortedBy);
  const numbers = [...table.tHead.rows[0].cells].flatMap((cell, i) => (cell.className.includes("number") ? [i] : []));
  const few = table.tBodies[0].rows.length <= 10;
  const made = new DataTable(table, {
    order: [[by, "desc"]],
    columnDefs: [{ targets: numbers, orderSequence: ["desc", "asc"] }],
    pageLength: 10,
    paging: !few,
    info: !few,
    searching: table.tBodies[0].rows.length > 1,
    autoWidth: false,
    language: { search: "Filter:", lengthMenu: "_MENU_ rows a page", info: "_START_ to _END_ of _TOTAL_", zeroRecords: "No row has that." },
  });
  const article = table.closest("article");
  const pages = table.closest(".table").querySelector("nav");
  pages?.setAttribute("aria-label", `Pages of: ${table.caption.textContent}`); // each table has its own
  made.on("draw", () => processes.get(article.id).mark());
}

const bundle = JSON.parse(document.getElementById("datatables").textContent);
DataTable = (await import(URL.createObjectURL(new Blob([bundle], { type: "text/javascript" })))).default;

const processes = new Map();
for (const article of document.querySelectorAll("article")) processes.set(article.id, new Process(article));
for (const button of document.querySelectorAll("[data-show]"))
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("[data-show]"))
      other.setAttribute("aria-pressed", String(other === button));
    for (const [id, process] of processes) process.article.hidden = id !== button.dataset.show;
    processes.get(button.dataset.show).begin();
  });
await processes.values().next().value.begin();
