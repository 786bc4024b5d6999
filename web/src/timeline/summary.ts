// What shows, as tables: what each lane's states add up to in the range, and single events. Screen readers and paper have them instead of the picture.

import { all, make, unfold } from "../dom.js";
import { counted, duration, share } from "../format.js";
import { equip } from "../tables.js";
import type { Data } from "./data.js";
import { crowd, isScatter } from "./scatter.js";
import { firstAbove, sums } from "./sums.js";
import { name } from "./tell.js";
import { clock } from "./ticks.js";

/** Events that are listed at most. */
const MOST = 300;

const TITLES: Record<string, string> = { vcpus: "vCPUs", guests: "Guests", threads: "Threads", cpus: "CPUs" };

function head(texts: readonly (readonly [string, string, string])[]): HTMLTableSectionElement {
  const row = make("tr");
  for (const [text, unit, column] of texts) row.append(make("th", { scope: "col", "data-unit": unit, "data-column": column }, text));
  return make("thead", {}, row);
}

/** The command that prints what a section has, as the page has it for a recording. */
export function commandOf(name: "vcpus" | "paths" | "sched", recording: number): string {
  const texts = all(`#${name} table.data[data-command]`).map((table) => table.getAttribute("data-command") ?? "");
  const ofAll = texts.filter((text) => text.startsWith(`trapline ${name} `) && !/ --time/.test(text));
  // A path's table has that path alone; without its name all are printed.
  const found = [...new Set(ofAll.map((text) => text.replace(/ --path ('[^']*'|\S+)/, "")))];
  return found[recording] ?? (recording === 0 ? `trapline ${name} REC` : "");
}

/** The tables of one timeline. */
export class Summary {
  readonly element = make("div", { class: "tl-summary" });
  private readonly tables = new Map<string, { table: HTMLTableElement; kinds: number[]; lanes: number[] }>();
  private hadEvents = false;
  private vm = "";
  private readonly paths: HTMLTableElement | undefined;
  private readonly events: { table: HTMLTableElement; note: HTMLElement } | undefined;

  constructor(
    private readonly data: Data,
    recording: number,
  ) {
    for (const group of new Set(data.lanes.map((lane) => lane.group))) {
      const lanes = data.lanes.flatMap((lane, index) => (lane.group === group ? [index] : []));
      this.tables.set(group, { table: this.group(group, lanes, recording), kinds: this.kindsOf(lanes), lanes });
    }
    if (data.marks.some(isScatter)) this.paths = this.pathTable(recording);
    if (data.windows.some((window) => window.count > 0)) this.events = this.eventTable(recording);
    if (this.element.childElementCount > 0) this.element.prepend(make("span", {}, "In what is shown:"));
    if (data.notes.length > 0) {
      const notes = data.notes.map((note) => make("p", { class: "note" }, note));
      this.element.append(make("details", {}, make("summary", {}, "What is left out"), ...notes));
    }
  }

  /** States that lanes have anywhere, so that columns stay where they are. */
  private kindsOf(lanes: readonly number[]): number[] {
    const found = new Set<number>();
    for (const index of lanes) {
      const cells = this.data.lanes[index]?.cells;
      for (const kind of cells?.kind ?? []) if (kind >= 0) found.add(kind);
      for (const kind of cells?.sumKind ?? []) found.add(kind);
    }
    return [...found].sort((a, b) => a - b);
  }

  private folded(title: string, table: HTMLTableElement): void {
    this.element.append(make("details", {}, make("summary", {}, title), table));
    equip(table);
  }

  private group(group: string, lanes: readonly number[], recording: number): HTMLTableElement {
    const table = make("table", { class: "data", "data-name": `timeline-${group}-${recording}` }, make("caption"));
    const columns = this.kindsOf(lanes).map((kind) => this.data.kinds[kind]);
    table.append(
      head([
        ["lane", "text", "lane"],
        ["observed", "ns", "observed_ns"],
        ...columns.map((kind) => [kind?.label ?? "?", "ns", `${kind?.id ?? "unknown"}_ns`] as const),
        ["stretches", "count", "stretches"],
      ]),
      make("tbody"),
    );
    if (group === "vcpus") table.setAttribute("data-command", "trapline vcpus REC");
    this.folded(`${TITLES[group] ?? group} by state`, table);
    return table;
  }

  private pathTable(recording: number): HTMLTableElement {
    const table = make("table", { class: "data", "data-name": `timeline-paths-${recording}` }, make("caption"));
    table.append(
      head([
        ["path", "text", "path"],
        ["instances", "count", "count"],
        ["slow ones", "text", "slow_count"],
        ["slow from", "ns", "slow_from_ns"],
        ["longest", "ns", "longest_ns"],
      ]),
      make("tbody"),
    );
    table.setAttribute("data-command", "trapline paths REC");
    this.folded("Instances of paths", table);
    return table;
  }

  private updatePaths(from: number, to: number, range: string, command: string): void {
    const { data, paths: table } = this;
    if (!table) return;
    const body = make("tbody");
    const time = (ns: number | undefined): HTMLTableCellElement =>
      ns === undefined ? make("td", { class: "none" }, "-") : make("td", { "data-v": String(ns) }, duration(ns, data.nanoseconds));
    for (const marks of data.marks) {
      if (!isScatter(marks)) continue;
      const sum = crowd(marks, from, to);
      const isKnown = Number.isFinite(marks.slow);
      const row = make("tr", {}, make("th", { scope: "row" }, marks.label), make("td", { "data-v": String(sum.count) }, String(sum.count)));
      row.append(make("td", {}, isKnown ? `${sum.exact ? "" : "at least "}${sum.slow}` : "-"));
      row.append(time(isKnown ? marks.slow : undefined), time(sum.count > 0 ? sum.longest : undefined));
      body.append(row);
    }
    table.tBodies[0]?.replaceWith(body);
    if (table.caption) table.caption.textContent = `Paths, instances that began in what is ${range}`;
    if (command) table.setAttribute("data-command", command);
    for (const one of all("th[aria-sort]", table)) one.removeAttribute("aria-sort");
  }

  private eventTable(recording: number): { table: HTMLTableElement; note: HTMLElement } {
    const table = make("table", { class: "data", "data-name": `timeline-events-${recording}` }, make("caption"));
    table.append(
      head([
        ["time", "ns", "time_ns"],
        ["CPU", "number", "cpu"],
        ["thread", "number", "tid"],
        ["lane", "text", "lane"],
        ["event", "text", "event"],
        ["fields", "text", "text"],
      ]),
      make("tbody"),
    );
    this.folded("Single events", table);
    const note = make("p", { class: "note" });
    table.closest("details")?.append(note);
    return { table, note };
  }

  /** Shows the lanes of one VM alone, and those of none. */
  only(vm: string): void {
    this.vm = vm;
  }

  /** Fills the tables again. */
  update(from: number, to: number, isSelection: boolean, commands: { vcpus: string; paths: string }): void {
    const { data } = this;
    const text = (time: number): string => clock(data.begin, time, data.nanoseconds);
    const range = `${isSelection ? "selected" : "shown"}: ${text(from)} to ${text(to)}, ${duration(to - from, data.nanoseconds)}`;
    const times = ` --time ${text(from)},${text(to)}`;
    this.updatePaths(from, to, range, commands.paths && commands.paths + times);
    for (const [group, { table, kinds, lanes }] of this.tables) {
      const body = make("tbody");
      let isExact = true;
      for (const index of lanes) {
        const lane = data.lanes[index];
        if (!lane || (this.vm !== "" && lane.vm !== this.vm && group !== "cpus")) continue;
        const sum = sums(lane.cells, data.kinds.length, from, to);
        isExact &&= sum.exact;
        const time = (ns: number): HTMLTableCellElement => {
          const cell = make("td", { "data-v": String(Math.round(ns)) }, ns > 0 ? duration(ns, data.nanoseconds) : "");
          if (ns > 0 && ns !== sum.total) cell.append(make("span", { class: "soft" }, ` ${share(ns, sum.total)}`));
          return cell;
        };
        const row = make("tr", {}, make("th", { scope: "row" }, lane.label), time(sum.total));
        for (const kind of kinds) row.append(time(sum.ns[kind] ?? 0));
        row.append(make("td", { "data-v": String(sum.stretches) }, String(sum.stretches)));
        body.append(row);
      }
      table.tBodies[0]?.replaceWith(body);
      const about = isExact ? "" : "; where an end of it is within a sum, that sum's states are taken to be spread evenly";
      if (table.caption) table.caption.textContent = `${TITLES[group] ?? group}, ${range}${about}`;
      if (group === "vcpus" && commands.vcpus) table.setAttribute("data-command", commands.vcpus + times);
      for (const one of all("th[aria-sort]", table)) one.removeAttribute("aria-sort");
    }
    this.updateEvents(from, to, range);
  }

  private updateEvents(from: number, to: number, range: string): void {
    if (!this.events) return;
    const { table, note } = this.events;
    const { data } = this;
    const body = make("tbody");
    let found = 0;
    let isWhole = false;
    for (const window of data.windows) {
      const first = firstAbove(window.time, from - 0.5);
      const last = firstAbove(window.time, to);
      found += last - first;
      isWhole ||= window.begin <= from && window.end >= to;
      for (let i = first; i < last && body.rows.length < MOST; i++) {
        const time = clock(data.begin, window.time[i] as number, data.nanoseconds);
        const cpu = window.cpu[i] as number;
        const exact = String(data.begin + BigInt(window.time[i] as number));
        body.append(
          make(
            "tr",
            {},
            make("td", { "data-v": exact }, time),
            make("td", { "data-v": cpu < 0 ? "" : String(cpu) }, cpu < 0 ? "" : String(cpu)),
            make("td", { "data-v": String(window.tid[i]) }, String(window.tid[i])),
            make("td", {}, data.lanes[window.lane[i] as number]?.label ?? ""),
            make("td", {}, name(data, window.name[i] as number)),
            make("td", {}, name(data, window.text[i] as number)),
          ),
        );
      }
    }
    table.tBodies[0]?.replaceWith(body);
    // Once, when there are few enough to be read.
    if (found > 0 && found <= MOST && !this.hadEvents) {
      this.hadEvents = true;
      unfold(table);
    }
    if (table.caption) table.caption.textContent = `Single events, ${range}`;
    const notes: string[] = [];
    if (found > MOST) notes.push(`The first ${MOST} of ${counted(found, "event")}: zoom in to see the others.`);
    if (!isWhole) notes.push("Single events are in this file only where the ruler has a line below it.");
    note.textContent = notes.join(" ");
  }
}
