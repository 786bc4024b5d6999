// From a number of a table to its events: the command that prints them, and where on the timeline one of them is.

import { copier, say } from "./copy.js";
import { all, button, make } from "./dom.js";
import type { Data } from "./timeline/data.js";
import { example, type Found } from "./timeline/find.js";
import type { Timeline } from "./timeline/timeline.js";

/** What `trapline explain` calls the columns that it explains, by command, by their names in CSV. */
const TIMES = { mean_ns: "mean", min_ns: "min", max_ns: "max", p50_ns: "p50", p90_ns: "p90", p99_ns: "p99" };
export const COLUMNS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  exits: { count: "count", total_ns: "time", ...TIMES },
  vcpus: { guest_ns: "guest", kernel_ns: "kernel", user_ns: "user", poll_ns: "poll", halted_ns: "halted", runnable_ns: "runnable", unknown_ns: "unknown" },
  sched: { switches: "switches", delay_mean_ns: "mean", delay_max_ns: "max", woken_wait_ns: "woken", preempted_wait_ns: "preempted", runtime_ns: "runtime" },
  paths: { count: "count", total_ns: "total", ...TIMES },
  irqs: { accepted: "accepted", posted: "posted", injected: "injected", repeated: "repeated", raised: "raised", lowered: "lowered" },
};

/** A row's exact values and texts, by the names of columns in CSV. */
export type Row = ReadonlyMap<string, string>;

/** Returns an argument as shells read it. */
export function quoted(argument: string): string {
  return /^[\w./,:=@%+-]+$/.test(argument) && !argument.startsWith("-") ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/**
 * The command that prints the events of a cell; nothing where there is none. `begin` is the command up to the row, as in
 * `trapline explain perf.data exits`.
 */
export function command(begin: string, of: string, row: Row, column: string): string | undefined {
  const called = COLUMNS[of]?.[column];
  if (called === undefined || (row.get(column) ?? "") === "") return undefined;
  // What is of one VM or one vCPU only.
  const only = (column: string, option: string): string => {
    const number = row.get(column) ?? "";
    return /^\d+$/.test(number) && !begin.includes(` --${option}=`) ? ` --${option}=${number}` : "";
  };
  switch (of) {
    case "exits":
      return row.get("key") ? `${begin} ${quoted(row.get("key") ?? "")} ${called}` : undefined;
    case "vcpus": {
      const vcpu = row.get("vcpu") ?? "";
      if (!/^\d+$/.test(vcpu)) return undefined;
      return `${begin} ${vcpu} ${called}${only("vm_pid", "vm")}`;
    }
    case "sched":
      return /^\d+$/.test(row.get("pid") ?? "") ? `${begin} ${row.get("pid") ?? ""} ${called}` : undefined;
    case "paths":
      // Of stages no single events are printed.
      return row.get("stage") === "total" ? `${begin} ${called}` : undefined;
    case "irqs": {
      const number = row.get("vector") || row.get("intid") || "";
      return /^(?:\d+|0x[0-9a-f]+)$/.test(number) ? `${begin} ${number} ${called}${only("vm_pid", "vm")}${only("vcpu", "vcpu")}` : undefined;
    }
    default:
      return undefined;
  }
}

/** The longest stretch of a lane in some states. */
function longest(data: Data, lane: number, kinds: ReadonlySet<number>): Found | undefined {
  const { cells, label } = data.lanes[lane] ?? {};
  let best = -1;
  for (let i = 0; cells && i < cells.count; i++) {
    if (!kinds.has(cells.kind[i] as number)) continue;
    const length = (cells.end[i] as number) - (cells.begin[i] as number);
    if (best < 0 || length > (cells.end[best] as number) - (cells.begin[best] as number)) best = i;
  }
  if (!cells || best < 0) return undefined;
  const state = data.kinds[cells.kind[best] as number]?.label ?? "";
  return { text: `${label ?? ""}: ${state}, the longest`, lane, from: cells.begin[best] as number, to: cells.end[best] as number };
}

/** Where on a timeline a cell's events are: the longest of them that it has by itself. */
export function place(data: Data, of: string, row: Row, column: string): Found | undefined {
  const lane = (tid: string | undefined): number => data.lanes.findIndex((one) => one.id === `tid-${tid ?? ""}`);
  switch (of) {
    case "exits":
      return example(data, row.get("key") ?? "");
    case "vcpus": {
      const state = COLUMNS["vcpus"]?.[column] ?? "";
      // Sleep during an exit is a part of its handling.
      const names = [state, `${state}_blocked`];
      const kinds = new Set(data.kinds.flatMap((kind, index) => (names.includes(kind.id) ? [index] : [])));
      return longest(data, lane(row.get("tid")), kinds);
    }
    case "sched": {
      const [at, max] = [row.get("delay_max_at_ns") ?? "", Number(row.get("delay_max_ns") ?? NaN)];
      if (!/^\d+$/.test(at) || !(max > 0)) return undefined;
      const to = Number(BigInt(at) - data.begin);
      const found = lane(row.get("pid"));
      const text = `${row.get("comm") ?? ""}: its longest delay`;
      return { text, from: to - max, to, ...(found >= 0 ? { lane: found } : {}) };
    }
    case "paths": {
      const name = row.get("path") ?? "";
      const line = data.marks.findIndex((one) => one.id === `path:${name}`);
      const marks = data.marks[line];
      let index = -1;
      for (let i = 0; marks && i < marks.count; i++) if (index < 0 || (marks.max[i] as number) > (marks.max[index] as number)) index = i;
      return index < 0 ? undefined : { text: `${name}: the longest instance`, mark: { line, index } };
    }
    default:
      return undefined;
  }
}

function text(element: Element | undefined): string {
  return (element?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/** A table whose numbers have events. */
class Explained {
  private readonly names: string[];
  private readonly of: string;
  private line: HTMLElement | undefined;
  private marked: HTMLElement | undefined;

  constructor(
    private readonly table: HTMLTableElement,
    private readonly begin: string,
    private readonly timeline: Timeline | undefined,
  ) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    this.names = heads.map((head) => head.getAttribute("data-column") ?? "");
    this.of = table.dataset["explainOf"] ?? "";
    table.classList.add("explained");
    table.addEventListener("click", (event) => this.press(event));
    table.addEventListener("keydown", (event) => this.key(event));
    // One of them is reached by Tab, the others from there.
    const first = all<HTMLTableCellElement>("tbody td[data-v]", table).find((cell) => this.commandOf(cell) !== undefined);
    first?.setAttribute("tabindex", "0");
  }

  private rowOf(cell: HTMLTableCellElement): Row {
    const cells = [...(cell.parentElement as HTMLTableRowElement).cells];
    const row = new Map(this.names.map((name, column) => [name, cells[column]?.getAttribute("data-v") ?? text(cells[column])]));
    const path = this.table.dataset["explainRow"];
    if (path !== undefined) row.set("path", path);
    return row;
  }

  private commandOf(cell: HTMLTableCellElement): string | undefined {
    return command(this.begin, this.of, this.rowOf(cell), this.names[cell.cellIndex] ?? "");
  }

  private press(event: Event): void {
    const cell = event.target instanceof Element ? event.target.closest<HTMLTableCellElement>("tbody td[data-v]") : null;
    // Who marks a text does not ask for it.
    if (cell && (getSelection()?.isCollapsed ?? true)) this.show(cell);
  }

  private key(event: KeyboardEvent): void {
    const cell = event.target instanceof HTMLTableCellElement ? event.target : null;
    if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Enter") this.show(cell);
    else if (event.key.startsWith("Arrow")) this.step(cell, event.key);
    else return;
    event.preventDefault();
  }

  /** Goes to the next number in a direction that shows. */
  private step(cell: HTMLTableCellElement, key: string): void {
    const row = cell.parentElement as HTMLTableRowElement;
    const isAside = key === "ArrowLeft" || key === "ArrowRight";
    const line = isAside ? [...row.cells] : all<HTMLTableRowElement>("tbody tr:not([hidden])", this.table).flatMap((one) => one.cells[cell.cellIndex] ?? []);
    const at = line.indexOf(cell);
    const rest = key === "ArrowLeft" || key === "ArrowUp" ? line.slice(0, at).reverse() : line.slice(at + 1);
    const next = rest.find((one) => !one.hidden && one.hasAttribute("data-v") && this.commandOf(one) !== undefined);
    if (!next) return;
    cell.removeAttribute("tabindex");
    next.setAttribute("tabindex", "0");
    next.focus();
  }

  private show(cell: HTMLTableCellElement): void {
    const row = this.rowOf(cell);
    const column = this.names[cell.cellIndex] ?? "";
    const line = command(this.begin, this.of, row, column);
    if (line === undefined) return;
    this.marked?.classList.remove("asked");
    this.marked = cell;
    cell.classList.add("asked");
    const made = make("p", { class: "command explain" }, make("span", {}, `The events behind ${text(cell)}:`), make("code", {}, line));
    made.append(copier("Copy", () => line, { class: "small copy", "aria-label": `Copy: ${line}` }));
    const { timeline } = this;
    const found = timeline && place(timeline.data, this.of, row, column);
    if (timeline && found) {
      const label = { class: "small", title: found.text, "aria-label": `Show on timeline: ${found.text}` };
      made.append(button("show the longest on timeline", () => timeline.show(found), label));
    }
    this.line?.remove();
    this.line = made;
    (this.table.parentElement ?? this.table).after(made);
    say(`The events behind ${text(cell)}: ${line}`);
  }
}

/** Makes the numbers of tables lead to their events. */
export function start(timelines: readonly Timeline[]): void {
  for (const table of all<HTMLTableElement>("table[data-explain]")) {
    const recording = Number(table.dataset["recording"] ?? "0");
    new Explained(table, table.dataset["explain"] ?? "", timelines.find((one) => one.recording === recording));
  }
}
