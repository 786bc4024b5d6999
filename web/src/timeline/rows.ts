// What stands above what: marks, VMs with their vCPUs and threads, the host's other threads, CPUs.

import type { Data } from "./data.js";
import { isScatter, rangeText } from "./scatter.js";

/** A row. `index` is that of the lane or the line of markers; `fold` names the group whose row folds it. */
export interface Row {
  type: "group" | "lane" | "marks" | "events" | "left";
  fold: string;
  label: string;
  detail: string;
  index: number;
  lanes: number[];
  top: number;
  height: number;
}

const HEIGHT = { group: 22, lane: 22, marks: 18, events: 18, left: 22 } as const;
/** Points need room upwards. */
const SCATTER = 46;
/** VMs that are unfolded when a page opens; where there are more, all are folded. */
const MOST_OPEN = 8;

const TITLES: Record<string, string> = { vcpus: "vCPUs", threads: "Threads", cpus: "CPUs" };

/** The group of a VM. */
export function groupOfVm(vm: string): string {
  return `vm:${vm}`;
}

/** Whether a group is a VM's. */
export function isVmGroup(group: string): boolean {
  return group.startsWith("vm:");
}

/** The group of each lane: its VM; without one, what it is. What a guest did stands below its vCPU. */
export function groupsOf(data: Data): string[] {
  let last = "vcpus";
  return data.lanes.map((lane) => {
    const isOfVm = lane.group === "vcpus" || lane.group === "threads";
    const own = isOfVm && lane.vm !== "" ? groupOfVm(lane.vm) : lane.group;
    if (lane.group === "guests") return last;
    if (lane.group === "vcpus") last = own;
    return own;
  });
}

/** What is folded when a page opens: VMs, where there are many. */
export function foldedAtFirst(data: Data): Set<string> {
  const vms = new Set(groupsOf(data).filter(isVmGroup));
  return vms.size > MOST_OPEN ? vms : new Set();
}

function title(data: Data, group: string, lanes: readonly number[]): { label: string; detail: string } {
  const count = (of: string): number => lanes.filter((index) => data.lanes[index]?.group === of).length;
  if (!isVmGroup(group)) {
    const own = group === "threads" && data.lanes.some((lane) => lane.vm !== "") ? "Other threads" : (TITLES[group] ?? group);
    return { label: `${own} (${count(group)})`, detail: "" };
  }
  const parts = [["vcpus", "vCPU"], ["threads", "thread"]].flatMap(([of, one]) => {
    const n = count(of ?? "");
    return n > 0 ? [`${n} ${one}${n === 1 ? "" : "s"}`] : [];
  });
  return { label: group.slice(3), detail: parts.join(", ") };
}

/** Rows from the top down; lanes of folded groups are left out, and their group's row shows what they add up to. `vm`: only lanes of that VM, and CPUs. */
export function rows(data: Data, folded: ReadonlySet<string>, vm = ""): Row[] {
  const out: Row[] = [];
  let top = 0;
  const push = (row: Pick<Row, "type" | "fold" | "label"> & Partial<Row>): void => {
    const made = { detail: "", index: -1, lanes: [], height: HEIGHT[row.type], ...row, top };
    out.push(made);
    top += made.height;
  };
  const strays = data.windows.some((window) => window.lane.some((lane) => lane < 0));
  if (data.marks.length > 0 || strays) {
    push({ type: "group", fold: "marks", label: "Marks" });
    if (!folded.has("marks")) {
      data.marks.forEach((line, index) => {
        const points = isScatter(line) ? { height: SCATTER, detail: rangeText(line, data.nanoseconds) } : {};
        push({ type: "marks", fold: "marks", label: line.label, index, ...points });
      });
      if (strays) push({ type: "events", fold: "marks", label: "other events", detail: "events of no lane, where single events were kept" });
    }
  }
  const of = groupsOf(data);
  const lanesOf = (group: string): number[] => data.lanes.flatMap((_, index) => (of[index] === group ? [index] : []));
  const left = data.withoutLane > 0 && vm === "";
  // VMs first, in the order of their first lanes; then what is of none.
  const rank = (group: string): number => (isVmGroup(group) ? 0 : ["vcpus", "threads", "cpus"].indexOf(group) + 1);
  const groups = [...new Set([...of, ...(left ? ["threads"] : [])])].sort((a, b) => rank(a) - rank(b));
  for (const group of groups) {
    if (vm !== "" && group !== groupOfVm(vm) && group !== "cpus") continue;
    const all = lanesOf(group);
    // vCPUs and their guests, then threads, whatever the order in which they were met.
    const order = (index: number): number => Number(data.lanes[index]?.group === "threads");
    all.sort((a, b) => order(a) - order(b) || a - b);
    const vcpus = all.filter((index) => data.lanes[index]?.group === "vcpus");
    push({ type: "group", fold: group, ...title(data, group, all), lanes: vcpus.length > 0 ? vcpus : all });
    if (folded.has(group)) continue;
    for (const index of all) {
      const lane = data.lanes[index];
      if (lane) push({ type: "lane", fold: group, label: lane.label, detail: lane.detail, index, lanes: [index] });
    }
    if (group === "threads" && left) {
      const n = data.withoutLane;
      push({ type: "left", fold: group, label: `${n} other thread${n === 1 ? "" : "s"}`, detail: "left out here; 'trapline sched' has all" });
    }
  }
  return out;
}

/** The row that shows a lane: its own, or its folded group's. */
export function rowOf(rows: readonly Row[], groups: readonly string[], lane: number): Row | undefined {
  if (lane < 0) return undefined;
  return rows.find((row) => row.type === "lane" && row.index === lane) ?? rows.find((row) => row.type === "group" && row.fold === groups[lane]);
}

/** How high all rows are. */
export function height(rows: readonly Row[]): number {
  const last = rows[rows.length - 1];
  return last ? last.top + last.height : 0;
}

/** Gives rows that need more room their heights, and all their places. */
export function place(rows: readonly Row[], heights: ReadonlyMap<number, number>): void {
  let top = 0;
  rows.forEach((row, index) => {
    row.height = Math.max(row.height, heights.get(index) ?? 0);
    row.top = top;
    top += row.height;
  });
}

/** The row at a height. */
export function rowAt(rows: readonly Row[], y: number): Row | undefined {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = rows[middle] as Row;
    if (y < row.top) high = middle - 1;
    else if (y >= row.top + row.height) low = middle + 1;
    else return row;
  }
  return undefined;
}
