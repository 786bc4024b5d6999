// A timeline: its data, what shows of it, and what was asked of it.

import { all, eachFrame, replaceHash, settled, unfold } from "../dom.js";
import type { Place } from "../hash.js";
import type { Data, Marks } from "./data.js";
import { type Cursor, Painter, type Scene } from "./draw.js";
import { find, type Found } from "./find.js";
import { arrows, Focus } from "./focus.js";
import { Frame } from "./frame.js";
import { Input } from "./input.js";
import { act } from "./keys.js";
import { fitLabels, makeLabel } from "./labels.js";
import { legend } from "./legend.js";
import { MarkList, markNear, marksOfVm } from "./marks.js";
import { type Palette, palette } from "./palette.js";
import { foldedAtFirst, groupOfVm, groupsOf, height, isVmGroup, place, type Row, rowAt, rows } from "./rows.js";
import { hashOf, rangeOf, rangeText } from "./places.js";
import { isSlow } from "./scatter.js";
import { hops, lanesOf, markOf } from "./stages.js";
import { Elsewhere, Overview, ruler, sized } from "./strip.js";
import { commandOf, Summary } from "./summary.js";
import { byState, cellAt, firstAbove, type Sums } from "./sums.js";
import { cell, event as tellEvent, eventAt, lanes as tellLanes, mark as tellMark, sentence, type PlaceText } from "./tell.js";
import { clock, type Tick, ticks } from "./ticks.js";
import { View } from "./view.js";

/** One timeline of the page. */
export class Timeline {
  readonly view: View;
  /** How long the last frame took to draw, in milliseconds. */
  lastFrameMs = 0;
  frames = 0;
  /** Shows all VMs again, over the whole page. */
  leaveVm: () => void = () => this.only("");
  private readonly frame: Frame;
  private readonly painter: Painter;
  private readonly strip: Overview;
  private readonly summary: Summary;
  private readonly focus: Focus;
  private marks: MarkList;
  private slow: MarkList;
  /** Marks of all VMs, and the VM that is shown alone. */
  private readonly allMarks: Marks[];
  private vm = "";
  /** Other canvases that show all of it. */
  private readonly others: Elsewhere[] = [];
  private readonly folded: Set<string>;
  private readonly groups: readonly string[];
  private rows: Row[] = [];
  private colours: Palette | undefined;
  private marked = new Set<number>();
  private cursor: Cursor | undefined;
  private selection: [number, number] | undefined;
  private chosen: { line: number; index: number } | undefined;
  private readonly redraw = eachFrame(() => this.draw());
  private readonly settle = settled(() => this.settled(), 200);
  private touched = false;
  /** How wide the timeline was when names were given their room. */
  private wide = 0;

  constructor(
    readonly host: HTMLElement,
    readonly data: Data,
    readonly recording: number,
  ) {
    this.view = new View(data.length);
    this.painter = new Painter(data);
    this.strip = new Overview(data);
    this.groups = groupsOf(data);
    this.folded = foldedAtFirst(data);
    this.allMarks = data.marks;
    this.marks = new MarkList(data);
    this.slow = new MarkList(data, isSlow);
    this.summary = new Summary(data, recording);
    this.focus = new Focus(data, (of) => commandOf(of, recording));
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
        foldVms: () => this.foldVms(),
      },
      recording,
      { slow: this.slow.list.length > 0, vms: new Set(this.groups.filter(isVmGroup)).size > 1 },
    );
    this.frame.body.after(this.focus.element);
    this.summary.element.append(this.frame.keys);
    host.append(this.summary.element);
    const input = new Input(this.frame.plot, this.frame.scroll, this.view, {
      moved: () => this.moved(),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.frame.tips.hide(),
      click: (x, y) => this.click(x, y),
      fit: () => this.fit(),
      selected: (from, to) => this.select([from, to]),
      key: (pressed) => act(this, pressed),
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

  zoom(factor: number): void {
    const { view, cursor } = this;
    const around = cursor && cursor.time >= view.from && cursor.time <= view.to ? cursor.time : (view.from + view.to) / 2;
    view.zoom(factor, around);
    this.touched = true;
    this.shown();
  }

  fit(): void {
    this.touched = true;
    this.setView(0, this.data.length);
  }

  pan(parts: number): void {
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
    const [from, to] = rangeOf(place, data);
    // An instance's steps are at the ends of its time: they need room beside them.
    const room = from === to ? Math.min(data.length / 20, 1e6) : place.path !== "" ? (to - from) / 25 : 0;
    this.marked = new Set(place.lanes.map((id) => data.lanes.findIndex((lane) => lane.id === id)).filter((index) => index >= 0));
    const instance = place.path === "" ? undefined : markOf(data, from, to, place.path);
    // Without lanes of its own a link to an instance leads to those that it goes over.
    const lanes = this.marked.size > 0 ? this.marked : new Set(instance ? lanesOf(data, instance) : []);
    this.reach(lanes);
    for (const index of lanes) this.folded.delete(this.groups[index] ?? "");
    this.layout();
    this.setView(from - room, to + room);
    const first = this.rows.findIndex((row) => row.type === "lane" && lanes.has(row.index));
    // Near the top, below its group's name: the foot of the lanes may lie below the window.
    if (first >= 0) this.frame.scroll.scrollTop = (this.rows[first]?.top ?? 0) - 44;
    unfold(this.host);
    // An instance has its stages below the lanes. Else to the section's head, unless that is another recording's.
    const section = this.host.closest("section");
    const isFirst = section?.querySelector(".timeline") === this.host;
    (instance ? this.frame.body : section && isFirst ? section : this.host).scrollIntoView({ block: "start" });
    this.frame.plot.focus({ preventScroll: true });
    if (instance) return this.chooseMark(instance.line, instance.index);
    const names = [...this.marked].map((index) => data.lanes[index]?.label).join(", ");
    this.frame.status.textContent = `Shown: ${rangeText(this.data, this.view.from, this.view.to)}${names ? ` · ${names}` : ""}`;
  }

  /** A link to what shows, as a fragment. */
  hash(): string {
    return hashOf(this.data, this.view, this.marked, this.vm, this.recording);
  }

  private link(): string {
    return location.href.replace(/#.*$/, "") + this.hash();
  }

  // Rows.

  private layout(): void {
    this.rows = rows(this.data, this.folded, this.vm);
    const made = this.rows.map((row, at) => {
      const isMarked = row.type === "lane" && this.marked.has(row.index);
      return makeLabel(this.data, row, this.folded.has(row.fold), isMarked, () => this.press(row, at));
    });
    this.frame.labels.replaceChildren(...made);
    this.frame.vmsAre([...this.groups].filter(isVmGroup).every((group) => this.folded.has(group)));
    this.named();
    this.cursor = undefined;
    this.redraw();
  }

  /** Gives names the room that they need: no name is cut, and details of lanes stand beside it only as a whole. */
  private named(): void {
    const heights = fitLabels(this.host, this.frame.labels);
    place(this.rows, heights);
    this.frame.plot.style.height = `${height(this.rows)}px`;
  }

  /** A group's name folds it; a lane's chooses it. */
  private press(row: Row, index: number): void {
    if (row.type !== "group") return this.choose(index);
    if (!this.folded.delete(row.fold)) this.folded.add(row.fold);
    this.layout();
    all("button[aria-expanded]", this.frame.labels)
      .find((one) => one.dataset["group"] === row.fold)
      ?.focus();
  }

  /** Chooses a mark, without going to where it is. */
  private chooseMark(line: number, index: number): void {
    this.chosen = { line, index };
    if (this.folded.delete("marks")) this.layout();
    this.cursor = { row: this.rows.findIndex((row) => row.type === "marks" && row.index === line), time: this.data.marks[line]?.begin[index] ?? 0 };
    this.say(this.explained(this.cursor.row, this.cursor.time));
    this.redraw();
  }

  /** Folds the lanes of all VMs, or unfolds them where all are folded. */
  private foldVms(): void {
    const vms = new Set(this.groups.filter(isVmGroup));
    const isFolded = [...vms].every((group) => this.folded.has(group));
    for (const group of vms) {
      if (isFolded) this.folded.delete(group);
      else this.folded.add(group);
    }
    this.layout();
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
    const placeText = this.explained(index, this.cursor.time);
    this.say(placeText);
    this.frame.tips.keep(byKey ? placeText : undefined);
    this.redraw();
  }

  // What is said.

  private get unit(): number {
    return this.view.span / Math.max(1, this.frame.plot.clientWidth);
  }

  private markAt(row: Row, time: number, y?: number): number | undefined {
    return markNear(this.data.marks[row.index], row, time, this.unit, y);
  }

  /** What is at a row and a time. */
  private placeText(index: number, time: number, y?: number): PlaceText | undefined {
    const row = this.rows[index];
    if (!row) return undefined;
    if (row.type === "marks") {
      const found = this.markAt(row, time, y);
      return found === undefined ? undefined : tellMark(this.data, row.index, found, this.unit);
    }
    if (row.type === "left") return { head: row.label, lines: [row.detail] };
    if (row.type === "events") return tellEvent(this.data, eventAt(this.data, -1, time, 4 * this.unit));
    const stands = row.lanes.length > 0 && (row.type === "lane" || this.folded.has(row.fold));
    return stands ? tellLanes(this.data, row.lanes, row.label, time, this.unit) : undefined;
  }

  /** The same of a place that is chosen, with what led to it: who woke it, and who ran while it waited. */
  private explained(index: number, time: number): PlaceText | undefined {
    const [row, placeText] = [this.rows[index], this.placeText(index, time)];
    this.focus.clear();
    if (!row || !placeText) return placeText;
    const mark = row.type === "marks" ? (this.chosen?.line === row.index ? this.chosen.index : this.markAt(row, time)) : undefined;
    const more = mark !== undefined ? this.focus.mark(row.index, mark) : row.type === "lane" ? this.focus.moment(row.index, time) : [];
    return { head: placeText.head, lines: [...placeText.lines, ...more] };
  }

  private say(placeText: PlaceText | undefined): void {
    const at = this.cursor ? ` (${clock(this.data.begin, this.cursor.time, this.data.nanoseconds)})` : "";
    this.frame.status.textContent = placeText ? sentence(placeText) : `Nothing was recorded here${at}`;
  }

  private hover(x: number, y: number): void {
    const row = rowAt(this.rows, y);
    const time = this.view.time(x, this.frame.plot.clientWidth);
    let placeText = row ? this.placeText(this.rows.indexOf(row), time, y - row.top) : undefined;
    // The foot of a lane has its single events.
    if (row?.type === "lane" && y > row.top + row.height - 8) {
      placeText = tellEvent(this.data, eventAt(this.data, row.index, time, 3 * this.unit)) ?? placeText;
    }
    this.frame.tips.show(placeText, x, y);
  }

  /** Puts what is shown beside the cursor to where the cursor is now. */
  private follow(): void {
    const { cursor, frame, view } = this;
    const row = this.rows[cursor?.row ?? -1];
    if (!cursor || !row) return;
    const y = row.top + row.height / 2;
    const at = y - frame.scroll.scrollTop;
    const shows = cursor.time >= view.from && cursor.time <= view.to && at >= 0 && at <= frame.scroll.clientHeight;
    frame.tips.follow(view.x(cursor.time, frame.plot.clientWidth), y, shows);
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

  // What keys ask for.

  /** Chooses nothing any more. */
  clear(): void {
    this.cursor = undefined;
    this.chosen = undefined;
    this.focus.clear();
    if (this.marked.size > 0) {
      this.marked.clear();
      this.layout();
    }
    this.frame.tips.hide();
    this.select(undefined);
  }

  /** To the next row that says something. */
  step(by: number): void {
    let at = this.cursor ? this.cursor.row + by : by > 0 ? 0 : this.rows.length - 1;
    while (this.rows[at]?.type === "group" && !this.folded.has(this.rows[at]?.fold ?? "")) at += by;
    if (this.rows[at]) this.choose(at, undefined, true);
  }

  /** To the stretch before or after the cursor, in its lane. */
  stretch(by: number): void {
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
    const found = cell(this.data, lane, next);
    const placeText = { head: found.head, lines: [...found.lines, ...this.focus.moment(row?.index ?? -1, time)] };
    this.say(placeText);
    this.frame.tips.keep(placeText);
    this.redraw();
    this.shown();
  }

  /** Zooms to what is selected, or to the stretch or mark at the cursor. */
  closer(): void {
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

  toMark(by: number): void {
    this.along(this.marks, "mark", by);
  }

  toSlow(by: number): void {
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
    const found = tellMark(this.data, mark.line, mark.index, this.unit);
    const placeText = { head: found.head, lines: [...found.lines, ...this.focus.mark(mark.line, mark.index)] };
    const name = `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`;
    this.frame.status.textContent = `${name} ${next + 1} of ${list.length}: ${sentence(placeText)}`;
    this.frame.tips.keep(placeText);
    this.redraw();
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

  /** Shows one VM alone, with the CPUs that all share; all of them where it is "". A copied link says so. */
  only(vm: string): void {
    if (vm === this.vm) return;
    this.touched = true;
    this.vm = vm;
    this.data.marks = marksOfVm(this.data, this.allMarks, vm);
    this.marks = new MarkList(this.data);
    this.slow = new MarkList(this.data, isSlow);
    this.clear();
    this.folded.delete(groupOfVm(vm));
    this.layout();
    this.summary.only(vm);
    this.shown();
  }

  /** Shows all VMs again, where one alone is shown and a link or a search leads to another one's lane. */
  private reach(lanes: Iterable<number>): void {
    const isHidden = (index: number): boolean => this.data.lanes[index]?.group !== "cpus" && this.data.lanes[index]?.vm !== this.vm;
    if (this.vm !== "" && [...lanes].some(isHidden)) this.leaveVm();
  }

  /** Shows a place, as a part of the whole, as wide as what shows now, and goes there. */
  showAround(part: number): void {
    const middle = part * this.data.length;
    const half = Math.min(this.view.span, this.data.length / 10) / 2;
    this.touched = true;
    this.setView(middle - half, middle + half);
    this.frame.body.scrollIntoView({ block: "nearest" });
  }

  /** Draws all of it on another canvas too. */
  alsoOn(canvas: HTMLCanvasElement): void {
    this.others.push(new Elsewhere(this.data, canvas, this.redraw));
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
      this.reach([found.lane]);
      if (this.folded.delete(this.groups[found.lane] ?? "")) this.layout();
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
    return found && byState(found.cells, this.data.kinds, from, to);
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
    if (this.host.clientWidth !== this.wide) {
      this.wide = this.host.clientWidth;
      this.rows = rows(this.data, this.folded, this.vm);
      this.named();
    }
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
    for (const other of this.others) other.draw(view, colours, ratio);
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
      arrows: arrows(data, this.focus.wakes, this.rows, this.groups, view, width),
      hops: hops(data, this.focus.instance, this.rows, this.groups, view, width),
      waited: this.focus.cpuIn(this.rows, this.groups),
    };
    if (context) this.painter.draw(context, scene);
    frame.range.textContent = rangeText(this.data, this.view.from, this.view.to);
    this.follow();
    this.lastFrameMs = performance.now() - start;
    this.frames++;
  }

  /** What is slower than a frame, when the view has come to rest. */
  private settled(): void {
    const [from, to] = this.selection ?? [this.view.from, this.view.to];
    const commands = { vcpus: commandOf("vcpus", this.recording), paths: commandOf("paths", this.recording) };
    this.summary.update(from, to, this.selection !== undefined, commands);
    if (this.touched) replaceHash(this.hash());
  }

}
