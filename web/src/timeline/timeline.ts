// A timeline: its data, what shows of it, and what was asked of it.

import { all, button, eachFrame, make, replaceHash, settled, unfold } from "../dom.js";
import { duration } from "../format.js";
import { format, type Place } from "../hash.js";
import type { Data } from "./data.js";
import { type Cursor, Painter, type Scene } from "./draw.js";
import { find, type Found } from "./find.js";
import { Frame } from "./frame.js";
import { Input } from "./input.js";
import { legend } from "./legend.js";
import { MarkList, markAt } from "./marks.js";
import { type Palette, palette } from "./palette.js";
import { foldOf, height, type Row, rowAt, rows } from "./rows.js";
import { isScatter, isSlow, pointAt } from "./scatter.js";
import { Overview, ruler, sized } from "./strip.js";
import { Summary } from "./summary.js";
import { cellAt, firstAbove, sums } from "./sums.js";
import { cell, event as tellEvent, eventAt, lanes as tellLanes, mark as tellMark, sentence, type Told } from "./tell.js";
import { clock, type Tick, ticks } from "./ticks.js";
import { View } from "./view.js";

/** What a lane did in a range, by the ids of states. */
export interface Sums {
  states: Record<string, number>;
  total: number;
  stretches: number;
  exact: boolean;
}

/** One timeline of the page. */
export class Timeline {
  readonly view: View;
  /** How long the last frame took to draw, in milliseconds. */
  lastFrameMs = 0;
  frames = 0;
  private readonly frame: Frame;
  private readonly painter: Painter;
  private readonly strip: Overview;
  private readonly summary: Summary;
  private readonly marks: MarkList;
  private readonly slow: MarkList;
  private readonly folded = new Set<string>();
  private rows: Row[] = [];
  private colours: Palette | undefined;
  private marked = new Set<number>();
  private cursor: Cursor | undefined;
  private selection: [number, number] | undefined;
  private chosen: { line: number; index: number } | undefined;
  /** What is shown beside the cursor that keys moved, as the pointer shows it. */
  private beside: Told | undefined;
  private readonly redraw = eachFrame(() => this.draw());
  private readonly settle = settled(() => this.settled(), 200);
  private touched = false;

  constructor(
    readonly host: HTMLElement,
    readonly data: Data,
    readonly recording: number,
  ) {
    this.view = new View(data.length);
    this.painter = new Painter(data);
    this.strip = new Overview(data);
    this.marks = new MarkList(data);
    this.slow = new MarkList(data, isSlow);
    this.summary = new Summary(data, recording);
    this.frame = new Frame(
      host,
      {
        zoom: (factor) => this.zoom(factor),
        fit: () => this.fit(),
        mark: (step) => this.toMark(step),
        slow: (step) => this.toSlow(step),
        link: () => this.link(),
        toSelection: () => this.toSelection(),
        clear: () => this.select(undefined),
      },
      recording,
      this.slow.list.length > 0,
    );
    host.append(this.summary.element);
    for (const note of data.notes) host.append(make("p", { class: "note" }, note));
    const input = new Input(this.frame.plot, this.frame.scroll, this.view, {
      moved: () => this.moved(),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.hide(),
      click: (x, y) => this.click(x, y),
      fit: () => this.fit(),
      selected: (from, to) => this.select([from, to]),
      key: (pressed) => this.key(pressed),
    });
    input.selects(this.frame.ruler, false);
    input.overview(this.frame.overview);
    this.layout();
    this.frame.scroll.addEventListener("scroll", this.redraw, { passive: true });
    new ResizeObserver(() => this.resized()).observe(this.frame.body);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    this.recolour();
    this.settled();
  }

  // What shows.

  /** Shows a range, relative to the recording's begin. */
  setView(from: number, to: number): void {
    this.view.set(from, to);
    this.shown();
  }

  private shown(): void {
    this.redraw();
    this.settle();
  }

  private moved(): void {
    this.touched = true;
    this.redraw();
    this.settle();
  }

  private zoom(factor: number): void {
    const { view, cursor } = this;
    const around = cursor && cursor.time >= view.from && cursor.time <= view.to ? cursor.time : (view.from + view.to) / 2;
    view.zoom(factor, around);
    this.touched = true;
    this.shown();
  }

  private fit(): void {
    this.touched = true;
    this.setView(0, this.data.length);
  }

  private pan(parts: number): void {
    this.view.pan(parts);
    this.touched = true;
    this.shown();
  }

  /** Selects a range, or none. */
  select(range: [number, number] | undefined): void {
    this.selection = range;
    this.frame.selectionTools.hidden = !range;
    this.redraw();
    this.settle();
  }

  private toSelection(): void {
    if (!this.selection) return;
    const [from, to] = this.selection;
    this.touched = true;
    this.select(undefined);
    this.setView(from, to);
  }

  /** Opens a place that a link names. */
  goto(place: Place): void {
    const { data } = this;
    // A clock that counts ticks may be printed as it is.
    const asTicks = !data.nanoseconds && place.whole;
    const time = (at: bigint): number => Number((asTicks ? at / 1_000_000_000n : at) - data.begin);
    const [from, to] = [time(place.from), time(place.to)];
    const room = from === to ? Math.min(data.length / 20, 1e6) : 0;
    this.marked = new Set(place.lanes.map((id) => data.lanes.findIndex((lane) => lane.id === id)).filter((index) => index >= 0));
    for (const index of this.marked) this.folded.delete(foldOf(data.lanes[index]?.group ?? ""));
    this.layout();
    this.setView(from - room, to + room);
    const first = this.rows.findIndex((row) => row.type === "lane" && this.marked.has(row.index));
    if (first >= 0) this.revealRow(first);
    unfold(this.host);
    // To the section's head, unless that is another recording's.
    const section = this.host.closest("section");
    const isFirst = section?.querySelector(".timeline") === this.host;
    (section && isFirst ? section : this.host).scrollIntoView({ block: "start" });
    this.frame.plot.focus({ preventScroll: true });
    const lanes = [...this.marked].map((index) => data.lanes[index]?.label).join(", ");
    this.frame.status.textContent = `Shown: ${this.rangeText()}${lanes ? ` · ${lanes}` : ""}`;
  }

  /** A link to what shows, as a fragment. */
  hash(): string {
    const { begin, lanes, nanoseconds } = this.data;
    const unit = nanoseconds ? 1n : 1_000_000_000n;
    return format({
      from: (begin + BigInt(Math.floor(this.view.from))) * unit,
      to: (begin + BigInt(Math.ceil(this.view.to))) * unit,
      lanes: [...this.marked].map((index) => lanes[index]?.id ?? ""),
      recording: this.recording,
      whole: !nanoseconds,
    });
  }

  private link(): string {
    return location.href.replace(/#.*$/, "") + this.hash();
  }

  // Rows.

  private layout(): void {
    this.rows = rows(this.data, this.folded);
    const { labels, plot } = this.frame;
    labels.replaceChildren(...this.rows.map((row, index) => this.label(row, index)));
    plot.style.height = `${height(this.rows)}px`;
    this.cursor = undefined;
    this.redraw();
  }

  private label(row: Row, index: number): HTMLElement {
    if (row.type === "group") {
      const isOpen = !this.folded.has(row.group);
      const press = (): void => {
        if (isOpen) this.folded.add(row.group);
        else this.folded.delete(row.group);
        this.layout();
        all("button[aria-expanded]", this.frame.labels)
          .find((one) => one.dataset["group"] === row.group)
          ?.focus();
      };
      return button(row.label, press, { class: "tl-row group", "aria-expanded": String(isOpen), "data-group": row.group });
    }
    const press = (): void => this.choose(index);
    const text = make("span", {}, row.label);
    const made = make("button", { type: "button", class: `tl-row ${row.type}`, tabindex: "-1", title: [row.label, row.detail].filter(Boolean).join(": ") }, text);
    if (isScatter(row.type === "marks" ? this.data.marks[row.index] : undefined)) made.classList.add("scatter");
    if (row.detail) made.append(" ", make("span", { class: "soft" }, row.detail));
    if (row.type === "lane") {
      made.dataset["lane"] = this.data.lanes[row.index]?.id ?? "";
      if (this.marked.has(row.index)) made.classList.add("marked");
    }
    made.addEventListener("click", press);
    return made;
  }

  private revealRow(index: number): void {
    const row = this.rows[index];
    const { scroll } = this.frame;
    if (!row) return;
    if (row.top < scroll.scrollTop) scroll.scrollTop = row.top - 22;
    else if (row.top + row.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = row.top + row.height + 22 - scroll.clientHeight;
  }

  /** Puts the cursor on a row. `byKey`: what is there is shown beside it too. */
  private choose(index: number, time?: number, byKey = false): void {
    const { view } = this;
    const before = this.cursor?.time;
    const isNear = before !== undefined && before >= view.from && before <= view.to;
    this.cursor = { row: index, time: time ?? (isNear ? before : (view.from + view.to) / 2) };
    this.revealRow(index);
    const told = this.told(index, this.cursor.time);
    this.say(told);
    this.showBeside(byKey ? told : undefined);
    this.redraw();
  }

  // What is said.

  private get unit(): number {
    return this.view.span / Math.max(1, this.frame.plot.clientWidth);
  }

  /** The mark at a row and a time, and, where points have heights, `y` pixels below the row's top. */
  private markAt(row: Row, time: number, y?: number): number | undefined {
    const marks = this.data.marks[row.index];
    if (marks && y !== undefined && isScatter(marks)) return pointAt(marks, { top: row.top, high: row.height }, time, y, this.unit);
    return markAt(marks, time, this.unit);
  }

  /** What is at a row and a time. */
  private told(index: number, time: number, y?: number): Told | undefined {
    const row = this.rows[index];
    if (!row) return undefined;
    if (row.type === "marks") {
      const found = this.markAt(row, time, y);
      return found === undefined ? undefined : tellMark(this.data, row.index, found, this.unit);
    }
    if (row.type === "events") return tellEvent(this.data, eventAt(this.data, -1, time, 4 * this.unit));
    const stands = row.lanes.length > 0 && (row.type === "lane" || this.folded.has(row.group));
    return stands ? tellLanes(this.data, row.lanes, row.label, time, this.unit) : undefined;
  }

  private say(told: Told | undefined): void {
    const at = this.cursor ? ` (${clock(this.data.begin, this.cursor.time, this.data.nanoseconds)})` : "";
    this.frame.status.textContent = told ? sentence(told) : `Nothing was recorded here${at}`;
  }

  private hover(x: number, y: number): void {
    const row = rowAt(this.rows, y);
    const time = this.view.time(x, this.frame.plot.clientWidth);
    let told = row ? this.told(this.rows.indexOf(row), time, y - row.top) : undefined;
    // The foot of a lane has its single events.
    if (row?.type === "lane" && y > row.top + row.height - 8) {
      told = tellEvent(this.data, eventAt(this.data, row.index, time, 3 * this.unit)) ?? told;
    }
    this.beside = undefined;
    this.tip(told, x, y);
  }

  /** Shows a text beside a place of the plot. */
  private tip(told: Told | undefined, x: number, y: number): void {
    const box = this.frame.body.getBoundingClientRect();
    const plot = this.frame.plot.getBoundingClientRect();
    this.frame.showTip(told, x + plot.left - box.left, y + plot.top - box.top);
  }

  private hide(): void {
    this.beside = undefined;
    this.frame.showTip(undefined, 0, 0);
  }

  /** Shows a text beside the cursor, where it stays until something else is chosen or the cursor is out of sight. */
  private showBeside(told: Told | undefined): void {
    this.hide();
    this.beside = told;
    this.redraw();
  }

  /** Puts what is shown beside the cursor to where the cursor is now. */
  private follow(): void {
    const { cursor, frame, view } = this;
    const row = this.rows[cursor?.row ?? -1];
    if (!this.beside || !cursor || !row) return;
    const y = row.top + row.height / 2;
    const at = y - frame.scroll.scrollTop;
    const shows = cursor.time >= view.from && cursor.time <= view.to && at >= 0 && at <= frame.scroll.clientHeight;
    this.tip(shows ? this.beside : undefined, view.x(cursor.time, frame.plot.clientWidth), y);
  }

  private click(x: number, y: number): void {
    const row = rowAt(this.rows, y);
    this.frame.plot.focus({ preventScroll: true });
    if (!row) return;
    const time = this.view.time(x, this.frame.plot.clientWidth);
    if (row.type === "marks") {
      const index = this.markAt(row, time, y - row.top);
      this.chosen = index === undefined ? undefined : { line: row.index, index };
    }
    this.choose(this.rows.indexOf(row), time);
  }

  private rangeText(): string {
    const { from, to } = this.view;
    const text = (time: number): string => clock(this.data.begin, time, this.data.nanoseconds);
    return `${text(from)} to ${text(to)} (${duration(to - from, this.data.nanoseconds)})`;
  }

  // Keys.

  private key({ key, shiftKey }: KeyboardEvent): boolean {
    const step = shiftKey ? 0.5 : 0.125;
    const { view, data } = this;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-step),
      ArrowRight: () => this.pan(step),
      a: () => this.pan(-step),
      d: () => this.pan(step),
      w: () => this.zoom(1 / 1.5),
      s: () => this.zoom(1.5),
      "+": () => this.zoom(1 / 1.5),
      "=": () => this.zoom(1 / 1.5),
      "-": () => this.zoom(1.5),
      "0": () => this.fit(),
      Home: () => this.pan(-view.from / view.span),
      End: () => this.pan((data.length - view.to) / view.span),
      ArrowUp: () => this.step(-1),
      ArrowDown: () => this.step(1),
      ",": () => this.stretch(-1),
      ".": () => this.stretch(1),
      n: () => this.toMark(1),
      p: () => this.toMark(-1),
      j: () => this.toSlow(1),
      k: () => this.toSlow(-1),
      f: () => this.closer(),
      Enter: () => this.closer(),
      Escape: () => this.clear(),
    };
    const action = actions[key.length === 1 ? key.toLowerCase() : key];
    action?.();
    return action !== undefined;
  }

  private clear(): void {
    this.cursor = undefined;
    this.chosen = undefined;
    if (this.marked.size > 0) {
      this.marked.clear();
      this.layout();
    }
    this.hide();
    this.select(undefined);
  }

  /** To the next row that says something. */
  private step(by: number): void {
    let at = this.cursor ? this.cursor.row + by : by > 0 ? 0 : this.rows.length - 1;
    while (this.rows[at]?.type === "group" && !this.folded.has(this.rows[at]?.group ?? "")) at += by;
    if (this.rows[at]) this.choose(at, undefined, true);
  }

  /** To the stretch before or after the cursor, in its lane. */
  private stretch(by: number): void {
    if (!this.cursor) this.step(1);
    const row = this.rows[this.cursor?.row ?? -1];
    const lane = row?.type === "lane" ? this.data.lanes[row.index] : undefined;
    if (!lane || !this.cursor) return;
    const { cells } = lane;
    const now = cellAt(cells, this.cursor.time);
    const next = now >= 0 ? now + by : firstAbove(cells.end, this.cursor.time) - (by < 0 ? 1 : 0);
    if (next < 0 || next >= cells.count) return;
    const time = ((cells.begin[next] as number) + (cells.end[next] as number)) / 2;
    this.view.reveal(time);
    this.touched = true;
    this.cursor = { row: this.cursor.row, time };
    const told = cell(this.data, lane, next);
    this.say(told);
    this.showBeside(told);
    this.shown();
  }

  /** Zooms to what is selected, or to the stretch or mark at the cursor. */
  private closer(): void {
    if (this.selection) return this.toSelection();
    const row = this.rows[this.cursor?.row ?? -1];
    if (!row || !this.cursor) return;
    const lane = row.type === "lane" ? this.data.lanes[row.index] : undefined;
    const at = lane ? cellAt(lane.cells, this.cursor.time) : -1;
    if (!lane || at < 0) return this.zoom(0.25);
    const [begin, end] = [lane.cells.begin[at] as number, lane.cells.end[at] as number];
    const room = (end - begin) / 4;
    this.touched = true;
    this.setView(begin - room, end + room);
  }

  private toMark(by: number): void {
    this.along(this.marks, "mark", by);
  }

  private toSlow(by: number): void {
    this.along(this.slow, "slow instance", by);
  }

  /** To the next of a list of marks, or the one before. */
  private along(marks: MarkList, what: string, by: number): void {
    const { list } = marks;
    // From a mark of another list, where it shows; else the first or the last that shows.
    const { chosen, view } = this;
    const begin = chosen ? this.data.marks[chosen.line]?.begin[chosen.index] : undefined;
    const shows = begin !== undefined && begin >= view.from && begin <= view.to;
    const next = marks.from(chosen, shows ? begin : by > 0 ? view.from : view.to, by);
    const mark = list[next];
    if (!mark) {
      this.frame.status.textContent = list.length === 0 ? `There is no ${what}` : `This was the ${by > 0 ? "last" : "first"} ${what}`;
      return;
    }
    this.gotoMark(mark.line, mark.index);
    const told = tellMark(this.data, mark.line, mark.index, this.unit);
    const name = `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`;
    this.frame.status.textContent = `${name} ${next + 1} of ${list.length}: ${sentence(told)}`;
    this.showBeside(told);
  }

  private gotoMark(line: number, index: number): void {
    const marks = this.data.marks[line];
    if (!marks) return;
    const { view } = this;
    const begin = marks.begin[index] as number;
    const length = marks.length[index] as number;
    // Close enough to see it, but no closer than one is.
    const most = length > 0 ? Math.max(length * 5, 1000) : this.data.length / 50;
    const span = Math.max(length * 1.5, Math.min(view.span, most));
    const middle = begin + length / 2;
    this.touched = true;
    this.chosen = { line, index };
    if (this.folded.delete("marks")) this.layout();
    const row = this.rows.findIndex((one) => one.type === "marks" && one.index === line);
    this.cursor = { row, time: begin };
    this.revealRow(row);
    this.setView(middle - span / 2, middle + span / 2);
  }

  // For the search and for tests.

  /** Where a text is found: lanes, causes, marks, events. */
  find(text: string): Found[] {
    return find(this.data, text);
  }

  /** Goes to what was found. */
  show(found: Found): void {
    if (found.mark) this.gotoMark(found.mark.line, found.mark.index);
    if (found.lane !== undefined) {
      const group = this.data.lanes[found.lane]?.group ?? "";
      if (this.folded.delete(foldOf(group))) this.layout();
      const row = this.rows.findIndex((one) => one.type === "lane" && one.index === found.lane);
      if (found.from !== undefined && found.to !== undefined) {
        const room = Math.max((found.to - found.from) * 2, 2000);
        this.setView(found.from - room, found.to + room);
        this.choose(row, (found.from + found.to) / 2);
      } else this.choose(row);
    } else if (found.from !== undefined && found.to !== undefined) this.setView(found.from - 5000, found.to + 5000);
    this.frame.status.textContent = found.text;
    this.frame.body.scrollIntoView({ block: "nearest" });
  }

  /** What a lane, by its id or number, did between two times. */
  sums(lane: string | number, from: number, to: number): Sums | undefined {
    const found = typeof lane === "number" ? this.data.lanes[lane] : this.data.lanes.find((one) => one.id === lane);
    if (!found) return undefined;
    const sum = sums(found.cells, this.data.kinds.length, from, to);
    const states: Record<string, number> = {};
    sum.ns.forEach((ns, kind) => {
      const id = this.data.kinds[kind]?.id;
      if (id && ns > 0) states[id] = (states[id] ?? 0) + ns;
    });
    return { states, total: sum.total, stretches: sum.stretches, exact: sum.exact };
  }

  // Drawing.

  private recolour(): void {
    this.colours = palette(this.data.kinds, this.host, window.devicePixelRatio >= 1.5);
    this.frame.legend.replaceChildren(...legend(this.data, this.colours));
    this.redraw();
  }

  private resized(): void {
    const isFine = this.colours?.size === 16;
    if (isFine !== window.devicePixelRatio >= 1.5) this.recolour();
    this.redraw();
  }

  private print(isBegin: boolean): void {
    document.documentElement.classList.toggle("printing", isBegin);
    if (isBegin) for (const fold of all<HTMLDetailsElement>("details", this.summary.element)) fold.open = true;
    this.recolour();
    this.draw();
  }

  /** Draws all, and notes how long that took. */
  draw(): void {
    const start = performance.now();
    const { frame, view, data } = this;
    const colours = this.colours;
    const width = frame.plot.clientWidth;
    const high = Math.min(frame.scroll.clientHeight, height(this.rows));
    if (!colours || width <= 0) return;
    const ratio = window.devicePixelRatio || 1;
    // Beside a scroll bar the lanes are narrower than what is above them, and times have to stand above each other.
    for (const canvas of [frame.overview, frame.ruler]) canvas.style.width = `${width}px`;
    const lines: Tick[] = ticks(data.begin, view.from, view.to, width / 120, data.nanoseconds);
    this.strip.draw(frame.overview, view, colours, width, frame.overview.clientHeight, ratio);
    ruler(frame.ruler, data, view, lines, this.selection, colours, width, frame.ruler.clientHeight, ratio);
    const context = sized(frame.canvas, width, high, ratio);
    frame.canvas.style.height = `${high}px`;
    const scene: Scene = {
      view,
      rows: this.rows,
      palette: colours,
      width,
      height: high,
      scroll: Math.min(frame.scroll.scrollTop, Math.max(0, height(this.rows) - high)),
      ratio,
      ticks: lines,
      marked: this.marked,
      selection: this.selection,
      cursor: this.cursor,
      chosen: this.chosen,
    };
    if (context) this.painter.draw(context, scene);
    frame.range.textContent = this.rangeText();
    this.follow();
    this.lastFrameMs = performance.now() - start;
    this.frames++;
  }

  /** What is slower than a frame, when the view has come to rest. */
  private settled(): void {
    const [from, to] = this.selection ?? [this.view.from, this.view.to];
    const commands = { vcpus: this.command("vcpus"), paths: this.command("paths") };
    this.summary.update(from, to, this.selection !== undefined, commands);
    if (this.touched) replaceHash(this.hash());
  }

  /** The command that prints what a section has, as the page has it for this recording. */
  private command(name: "vcpus" | "paths"): string {
    const texts = all(`#${name} table.data[data-command]`).map((table) => table.getAttribute("data-command") ?? "");
    const ofAll = texts.filter((text) => text.startsWith(`trapline ${name} `) && !/ --time/.test(text));
    // A path's table has that path alone; without its name all are printed.
    const found = [...new Set(ofAll.map((text) => text.replace(/ --path ('[^']*'|\S+)/, "")))];
    return found[this.recording] ?? (this.recording === 0 ? `trapline ${name} REC` : "");
  }
}
