// What stands above what: groups, their lanes, and lines of markers.

import type { Data } from "./data.js";
import { isScatter, rangeText } from "./scatter.js";

/** A row. `index` is that of the lane or the line of markers. */
export interface Row {
  type: "group" | "lane" | "marks" | "events";
  group: string;
  label: string;
  detail: string;
  index: number;
  lanes: number[];
  top: number;
  height: number;
}

const HEIGHT = { group: 22, lane: 22, marks: 18, events: 18 } as const;
/** Points need room upwards. */
const SCATTER = 46;

/** The group whose row folds a lane: what a guest did stands below its vCPU. */
export function foldOf(group: string): string {
  return group === "guests" ? "vcpus" : group;
}

const TITLES: Record<string, string> = { marks: "Marks", vcpus: "vCPUs", threads: "Threads", cpus: "CPUs" };

/** Rows from the top down; lanes of folded groups are left out, and their group's row shows what they add up to. */
export function rows(data: Data, folded: ReadonlySet<string>): Row[] {
  const out: Row[] = [];
  let top = 0;
  const push = (row: Pick<Row, "type" | "group" | "label"> & Partial<Row>): void => {
    const made = { detail: "", index: -1, lanes: [], height: HEIGHT[row.type], ...row, top };
    out.push(made);
    top += made.height;
  };
  const strays = data.windows.some((window) => window.lane.some((lane) => lane < 0));
  if (data.marks.length > 0 || strays) {
    push({ type: "group", group: "marks", label: "Marks" });
    if (!folded.has("marks")) {
      data.marks.forEach((line, index) => {
        const points = isScatter(line) ? { height: SCATTER, detail: rangeText(line, data.nanoseconds) } : {};
        push({ type: "marks", group: "marks", label: line.label, index, ...points });
      });
      if (strays) push({ type: "events", group: "marks", label: "other events", detail: "events of no lane, where single events were kept" });
    }
  }
  const groups = [...new Set(data.lanes.map((lane) => foldOf(lane.group)))];
  for (const group of groups) {
    const lanes = data.lanes.flatMap((lane, index) => (lane.group === group ? [index] : []));
    push({ type: "group", group, label: `${TITLES[group] ?? group} (${lanes.length})`, lanes });
    if (folded.has(group)) continue;
    data.lanes.forEach((lane, index) => {
      if (foldOf(lane.group) !== group) return;
      push({ type: "lane", group: lane.group, label: lane.label, detail: lane.detail, index, lanes: [index] });
    });
  }
  return out;
}

/** How high all rows are. */
export function height(rows: readonly Row[]): number {
  const last = rows[rows.length - 1];
  return last ? last.top + last.height : 0;
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
