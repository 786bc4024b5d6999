"use strict";
// Draws flame graphs from the numbers that each picture holds, in place of the boxes that it shows without a script.
// A picture is an element svg.flame; docs/flame.md says what can be done with it.
(() => {
  const ROW = 18; // Height of a box with the gap above it, as in boxes.rs.
  const PAD = 10; // Left and right of the boxes.
  const CELL = 6.65; // Width of a letter in a box.
  const LEAST = 0.4; // Pixels of a box that is drawn by itself.
  const TOOLS = 54; // Height of the tools and the line of details.
  const SVG = "http://www.w3.org/2000/svg";
  const HTML = "http://www.w3.org/1999/xhtml";

  // --- Numbers and words: no document is needed, and tests call them.

  /** Finds where boxes begin and who called them. Boxes come before those that they called. */
  function layOut(data, side) {
    const count = data.level.length;
    const start = new Float64Array(count);
    const parent = new Int32Array(count);
    const next = [0];
    const last = [];
    for (let i = 0; i < count; i++) {
      const level = data.level[i];
      start[i] = next[level];
      next[level] += data.amount[side][i];
      next[level + 1] = start[i];
      last[level] = i;
      parent[i] = level > 0 ? last[level - 1] : -1;
    }
    return { start, parent, amount: data.amount[side] };
  }

  /** Finds the boxes that are at least `least` pixels wide where `root` is `width` pixels wide. */
  function visible(data, layout, root, width, least) {
    const from = layout.start[root];
    const scale = layout.amount[root] > 0 ? width / layout.amount[root] : 0;
    const seen = [];
    for (let i = 0; i < data.level.length; i++) {
      const left = Math.max(0, (layout.start[i] - from) * scale);
      const right = Math.min(width, (layout.start[i] + layout.amount[i] - from) * scale);
      if (right - left >= least) seen.push({ i, x: left, width: right - left });
    }
    return seen;
  }

  /** Finds rows of boxes that are too narrow to be drawn, side by side on a box that is drawn, and wide enough together. */
  function narrow(data, layout, root, width, least) {
    const from = layout.start[root];
    const scale = layout.amount[root] > 0 ? width / layout.amount[root] : 0;
    const rows = [];
    const open = [];
    for (let i = 1; i < data.level.length; i++) {
      const of = layout.parent[i];
      const wide = layout.amount[i] * scale;
      if (wide >= least || wide <= 0 || layout.amount[of] * scale < least) continue;
      const left = (layout.start[i] - from) * scale;
      if (left < 0 || left + wide > width + least) continue;
      const row = open[data.level[i]];
      if (row?.of === of && row.end === layout.start[i]) {
        row.width += wide;
        row.count += 1;
        row.end += layout.amount[i];
      } else {
        open[data.level[i]] = { of, x: left, width: wide, count: 1, end: layout.start[i] + layout.amount[i] };
        rows.push(open[data.level[i]]);
      }
    }
    return rows.filter((row) => row.width >= least);
  }

  /** Makes a test for names: a regular expression if it is one, else plain text; without capitals it ignores case. */
  function matcher(text) {
    const flags = text === text.toLowerCase() ? "iu" : "u";
    try {
      const expression = new RegExp(text, flags);
      return (name) => expression.test(name);
    } catch {
      const fold = (name) => (flags === "iu" ? name.toLowerCase() : name);
      return (name) => fold(name).includes(text);
    }
  }

  /** Adds up what matching boxes weigh within `root`; what they called counts once. */
  function matched(data, layout, root, hits) {
    let sum = 0;
    let above = Infinity;
    const from = layout.start[root];
    const to = from + layout.amount[root];
    for (let i = 0; i < data.level.length; i++) {
      if (data.level[i] > above) continue;
      above = Infinity;
      if (!hits[i]) continue;
      above = data.level[i];
      const left = Math.max(from, layout.start[i]);
      const right = Math.min(to, layout.start[i] + layout.amount[i]);
      sum += Math.max(0, right - left);
    }
    return sum;
  }

  function share(part, whole) {
    return `${(whole > 0 ? (part / whole) * 100 : 0).toFixed(2)} %`;
  }

  function time(ns) {
    if (ns < 1000) return `${ns}ns`;
    const [value, unit] = ns < 999.95e3 ? [ns / 1e3, "us"] : ns < 999.95e6 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
    return value.toFixed(value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0) + unit;
  }

  function samples(count) {
    return count === 1 ? "1 sample" : `${count} samples`;
  }

  function nameOf(data, i) {
    const name = data.name[i];
    if (i === 0) return "all";
    if (name >= 0) return data.names[name];
    return name === -1 ? "1 smaller frame" : `${-name} smaller frames`;
  }

  /** Says what a box is, as boxes.rs does in the picture without a script. */
  function describe(data, i) {
    const of = (side) => share(data.amount[side][i], data.amount[side][0]);
    const part = data.words[data.kind[i]];
    const name = nameOf(data, i) + (part ? ` (${part})` : "");
    if (data.amount.length > 1) {
      const change = changeOf(data, i);
      const noise = data.noise[i] === "1" ? ", which may be noise" : "";
      const [a, b] = [0, 1].map((side) => `${of(side)} (${samples(data.samples[side][i])})`);
      return `${name}: A ${a}, B ${b}, ${change} points${noise}`;
    }
    const amount = data.unit === "ns" ? `${time(data.amount[0][i])}, ` : "";
    return `${name}: ${amount}${of(0)}, ${samples(data.samples[0][i])}`;
  }

  /** By how many points of per cent a box changed, with its sign. */
  function changeOf(data, i) {
    const points = (side) => (data.amount[side][0] > 0 ? (data.amount[side][i] / data.amount[side][0]) * 100 : 0);
    const change = points(1) - points(0);
    const text = Math.abs(change).toFixed(2);
    return (text === "0.00" ? "±" : change < 0 ? "−" : "+") + text;
  }

  /** Cuts a text to a width in pixels; wide characters take two cells. */
  function fit(text, width) {
    let cells = Math.floor(width / CELL);
    if (cells < 3) return "";
    let all = 0;
    for (const c of text) all += wide(c);
    if (all <= cells) return text;
    let cut = "";
    cells -= 1;
    for (const c of text) {
      cells -= wide(c);
      if (cells < 0) break;
      cut += c;
    }
    return `${cut}…`;
  }

  function wide(c) {
    return c.codePointAt(0) >= 0x1100 ? 2 : 1;
  }

  /** What a box bears: the mark of its part where that differs from its caller's, its name, its change. */
  function label(data, layout, i, width) {
    const of = layout.parent[i];
    const begins = data.amount.length < 2 && i > 0 && data.kind[i] !== data.kind[of];
    const mark = begins && width > 60 ? data.marks[data.kind[i]] : "";
    const change = data.amount.length > 1 && width > 120 ? ` ${changeOf(data, i)}` : "";
    const room = width - 6 - change.length * CELL;
    return fit((mark ? `${mark} ` : "") + nameOf(data, i), room) + change;
  }

  // --- The document.

  function element(space, tag, attributes, ...children) {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const svg = (tag, attributes, ...children) => element(SVG, tag, attributes, ...children);
  const html = (tag, attributes, ...children) => element(HTML, tag, attributes, ...children);

  class Picture {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("metadata").textContent);
      this.sides = this.data.amount.length;
      this.side = this.sides - 1;
      this.layout = layOut(this.data, this.side);
      this.top = this.data.top;
      this.zoomed = 0;
      this.current = 0;
      this.rootOnTop = false;
      this.rows = 0;
      this.hits = null;
      this.group = root.querySelector(".boxes");
      this.back = root.querySelector(".back");
      this.addTools();
      this.listen();
      this.resize();
      // Reading begins at the root, so it is in sight where a picture is all of its page.
      const alone = document.querySelectorAll("svg.flame").length === 1;
      if (alone && Number(root.getAttribute("height")) > innerHeight) this.turnRoot();
    }

    addTools() {
      this.reset = html("button", { type: "button" }, "Reset zoom");
      this.search = html("input", {
        type: "search",
        placeholder: "Search (Ctrl-F)",
        "aria-label": "Search for names",
        title: "A regular expression, or plain text. Without capitals it ignores case.",
        spellcheck: "false",
      });
      this.found = html("output", { class: "found" });
      this.turn = html("button", { type: "button", "aria-pressed": "false" }, "Root on top");
      this.details = html("div", { class: "details", role: "status" });
      this.tools = html("div", { class: "tools" }, this.reset, this.search, this.found, this.turn);
      if (this.sides > 1) {
        this.which = html("button", { type: "button" });
        this.tools.append(this.which);
      }
      this.frame = svg("foreignObject", { x: 0, y: 0, height: TOOLS }, this.tools, this.details);
      this.bar = svg("g", { class: "bar" }, svg("rect", { class: "back", height: TOOLS }), this.frame);
      this.root.append(this.bar);
    }

    listen() {
      const at = (event) => {
        const box = event.target.closest?.(".box");
        return Number(box?.dataset.i ?? box?.dataset.of ?? -1);
      };
      this.group.addEventListener("click", (event) => at(event) >= 0 && this.zoom(at(event)));
      this.group.addEventListener("mouseover", (event) => at(event) >= 0 && this.tell(at(event)));
      this.group.addEventListener("mouseleave", () => this.tell(this.zoomed));
      this.group.addEventListener("focusin", (event) => at(event) >= 0 && this.tell(at(event)));
      this.group.addEventListener("keydown", (event) => this.key(event, at(event)));
      this.reset.addEventListener("click", () => this.zoom(0));
      this.turn.addEventListener("click", () => this.turnRoot());
      this.which?.addEventListener("click", () => {
        this.side = 1 - this.side;
        this.layout = layOut(this.data, this.side);
        if (!(this.layout.amount[this.zoomed] > 0)) this.zoomed = 0;
        this.draw();
      });
      let waiting = 0;
      this.search.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => this.find(), 150);
      });
      this.root.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        if (this.search.value) {
          this.search.value = "";
          this.find();
        } else this.zoom(0);
      });
      addEventListener("keydown", (event) => {
        const alone = document.querySelectorAll("svg.flame").length === 1;
        const meant = alone || this.root.matches(":hover, :focus-within");
        if (!(event.ctrlKey || event.metaKey) || event.key !== "f" || !meant) return;
        event.preventDefault();
        this.search.focus();
        this.search.select();
      });
      addEventListener("resize", () => this.resize());
      addEventListener("scroll", () => this.pin(), { passive: true });
    }

    key(event, i) {
      if (i < 0) return;
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.zoom(i);
        return;
      }
      const up = this.rootOnTop ? "ArrowDown" : "ArrowUp";
      const down = this.rootOnTop ? "ArrowUp" : "ArrowDown";
      let next = -1;
      const drawn = this.drawn;
      if (event.key === down) next = this.layout.parent[i];
      else if (event.key === up) {
        let most = 0;
        for (const box of drawn) {
          if (this.layout.parent[box.i] === i && box.width > most) [next, most] = [box.i, box.width];
        }
      } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        const level = drawn.filter((box) => this.data.level[box.i] === this.data.level[i]);
        const place = level.findIndex((box) => box.i === i);
        next = level[place + (event.key === "ArrowLeft" ? -1 : 1)]?.i ?? -1;
      } else return;
      event.preventDefault();
      this.focus(next);
    }

    focus(i) {
      const box = this.group.querySelector(`[data-i="${i}"]`);
      if (!box) return;
      this.group.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
      box.setAttribute("tabindex", "0");
      this.current = i;
      box.focus();
    }

    turnRoot() {
      this.rootOnTop = !this.rootOnTop;
      this.turn.setAttribute("aria-pressed", String(this.rootOnTop));
      this.draw();
    }

    zoom(i) {
      const held = this.group.contains(document.activeElement);
      this.zoomed = i;
      this.current = i;
      this.draw();
      this.tell(i);
      if (held) this.focus(i);
    }

    tell(i) {
      this.details.textContent = describe(this.data, i);
    }

    find() {
      const text = this.search.value;
      if (!text) this.hits = null;
      else {
        const test = matcher(text);
        const names = this.data.names.map(test);
        this.hits = this.data.name.map((name, i) => i > 0 && name >= 0 && names[name]);
      }
      this.draw();
    }

    sayFound() {
      if (!this.hits) {
        this.found.textContent = "";
        return;
      }
      const { amount } = this.layout;
      const all = matched(this.data, this.layout, 0, this.hits);
      let text = `matched ${share(all, amount[0])}`;
      if (this.data.unit === "ns" && this.sides < 2) text += `, ${time(all)}`;
      if (this.zoomed > 0) {
        const here = matched(this.data, this.layout, this.zoomed, this.hits);
        text += `; ${share(here, amount[this.zoomed])} of what is shown`;
      }
      this.found.textContent = text;
    }

    resize() {
      const around = this.root.parentElement;
      const room = around ? around.clientWidth : visualViewport.width;
      this.width = Math.max(600, Math.floor(room));
      this.draw();
    }

    draw() {
      const { data, layout, width } = this;
      const inner = width - 2 * PAD;
      this.drawn = visible(data, layout, this.zoomed, inner, LEAST);
      const strips = narrow(data, layout, this.zoomed, inner, LEAST);
      const highest = strips.reduce((most, row) => Math.max(most, data.level[row.of] + 1), 0);
      const levels = this.drawn.reduce((most, box) => Math.max(most, data.level[box.i]), highest) + 1;
      // The root stays where it is, unless there is no room for what shows now.
      if (this.zoomed === 0) this.rows = levels;
      const rows = Math.max(this.rows, levels);
      const height = this.top + TOOLS + rows * ROW + PAD;
      const boxes = document.createDocumentFragment();
      for (const { i, x, width: wide } of this.drawn) {
        const level = data.level[i];
        const y = (this.rootOnTop ? level : rows - 1 - level) * ROW;
        const hit = this.hits?.[i] ? " hit" : "";
        const above = level < data.level[this.zoomed] ? " above" : "";
        const box = svg("g", {
          class: `box ${data.classes[data.kind[i]]}${hit}${above}`,
          "data-i": i,
          role: "button",
          tabindex: i === this.current ? 0 : -1,
        });
        box.append(svg("title", {}, describe(data, i)));
        const gap = wide > 2 ? 0.5 : 0;
        box.append(svg("rect", { x: x.toFixed(2), y, width: (wide - gap).toFixed(2), height: ROW - 1, rx: 1 }));
        const text = wide < 26 ? "" : label(data, layout, i, wide);
        if (text) box.append(svg("text", { x: (x + 3).toFixed(2), y: y + 12.5 }, text));
        boxes.append(box);
      }
      for (const { of, x, width: wide, count } of strips) {
        const level = data.level[of] + 1;
        const y = (this.rootOnTop ? level : rows - 1 - level) * ROW;
        const said = `${count} narrow boxes on ${nameOf(data, of)}: a click zooms`;
        const rect = svg("rect", { x: x.toFixed(2), y, width: wide.toFixed(2), height: ROW - 1 });
        boxes.append(svg("g", { class: "box smaller", "data-of": of }, svg("title", {}, said), rect));
      }
      this.group.replaceChildren(boxes);
      this.group.setAttribute("transform", `translate(${PAD} ${this.top + TOOLS})`);
      if (!this.group.querySelector('[tabindex="0"]')) this.group.firstChild?.setAttribute("tabindex", "0");
      this.root.setAttribute("width", width);
      this.root.setAttribute("height", height);
      this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.back.setAttribute("width", width);
      this.back.setAttribute("height", height);
      this.bar.firstChild.setAttribute("width", width);
      this.frame.setAttribute("width", width);
      this.reset.disabled = this.zoomed === 0;
      if (this.which) this.which.textContent = this.side ? "Widths: B" : "Widths: A";
      this.sayFound();
      this.pin();
    }

    /** Keeps the tools in sight where the picture is taller than the window. */
    pin() {
      const above = -this.root.getBoundingClientRect().top;
      const most = Number(this.root.getAttribute("height")) - TOOLS;
      this.bar.setAttribute("transform", `translate(0 ${Math.min(Math.max(this.top, above), most)})`);
    }
  }

  const pure = { layOut, visible, narrow, matcher, matched, share, time, nameOf, describe, changeOf, fit, label };
  if (typeof document === "undefined") {
    globalThis.flame = pure;
    return;
  }
  for (const root of document.querySelectorAll("svg.flame")) {
    const picture = new Picture(root);
    picture.tell(0);
    root.classList.add("drawn");
  }
})();
