// What is said of a place: of a stretch its state, cause, duration, behind whom and CPU; of a sum its parts.

import { counted, duration, share } from "../format.js";
import type { Data, Lane } from "./data.js";
import { aroundText, isScatter, isSlow } from "./scatter.js";
import { add, cellAt, firstAbove, type Sum } from "./sums.js";
import { clock } from "./ticks.js";

/** A heading and lines below it. */
export interface PlaceText {
  head: string;
  lines: string[];
}

/** A name by its number. */
export function name(data: Data, index: number): string {
  return data.names[index] ?? "";
}

function between(data: Data, from: number, to: number): string {
  const text = (time: number): string => clock(data.begin, time, data.nanoseconds);
  return `${duration(to - from, data.nanoseconds)}, from ${text(from)} to ${text(to)}`;
}

/** Says what a sum consists of, the greatest part first. */
export function parts(data: Data, sum: Sum): string[] {
  const found = [...sum.ns].map((ns, kind) => ({ ns, label: data.kinds[kind]?.label ?? "?" })).filter(({ ns }) => ns > 0);
  found.sort((x, y) => y.ns - x.ns);
  return found.map(({ ns, label }) => `${label}: ${duration(ns, data.nanoseconds)} (${share(ns, sum.total)})`);
}

function emptySum(data: Data): Sum {
  return { ns: new Float64Array(data.kinds.length), total: 0, stretches: 0, exact: true };
}

function stretch(data: Data, lane: Lane, i: number): PlaceText {
  const { cells } = lane;
  const kind = data.kinds[cells.kind[i] as number];
  const [what, behind] = [name(data, cells.a[i] as number), name(data, cells.b[i] as number)];
  const cpu = cells.c[i] as number;
  const lines = [between(data, cells.begin[i] as number, cells.end[i] as number)];
  if (what) lines.unshift(what);
  if (behind) lines.push(`behind ${behind}`);
  if (cpu >= 0 && lane.group !== "cpus") lines.push(`on CPU ${cpu}`);
  return { head: `${lane.label}: ${kind?.label ?? "?"}`, lines };
}

/** Says what one cell is: a stretch, or a sum that was not kept finer. */
export function cell(data: Data, lane: Lane, i: number): PlaceText {
  const { cells } = lane;
  if ((cells.kind[i] as number) >= 0) return stretch(data, lane, i);
  const [from, to] = [cells.begin[i] as number, cells.end[i] as number];
  const sum = emptySum(data);
  add(sum, cells, from, to);
  return {
    head: `${lane.label}: ${counted(cells.c[i] as number, "stretch", "stretches")}, kept as a sum`,
    lines: [...parts(data, sum), between(data, from, to), "Too short to be kept one by one in this file; their order is not known here."],
  };
}

/** Says what lanes did around a time, `unit` being the time that a pixel is. */
export function lanes(data: Data, which: readonly number[], label: string, time: number, unit: number): PlaceText | undefined {
  const only = which.length === 1 ? data.lanes[which[0] as number] : undefined;
  let [from, to] = [time - unit / 2, time + unit / 2];
  if (only) {
    const i = cellAt(only.cells, time);
    if (i >= 0 && (only.cells.end[i] as number) - (only.cells.begin[i] as number) >= unit) return cell(data, only, i);
    // To whole cells, so that what is said is exact.
    const { begin, end, count } = only.cells;
    const first = firstAbove(end, from);
    if (first >= count || (begin[first] as number) >= to) return undefined;
    let last = first;
    while (last + 1 < count && (begin[last + 1] as number) < to) last++;
    if (first === last) return cell(data, only, first);
    [from, to] = [begin[first] as number, end[last] as number];
  }
  const sum = emptySum(data);
  for (const index of which) {
    const lane = data.lanes[index];
    if (lane) add(sum, lane.cells, from, to);
  }
  if (sum.total <= 0) return undefined;
  const about = sum.exact ? "" : "about ";
  const head = `${label}: ${about}${counted(sum.stretches, "stretch", "stretches")}`;
  return { head, lines: [...parts(data, sum), between(data, from, to)] };
}

/** Says what a mark is, and what lies around it where `unit` says what time a pixel is. */
export function mark(data: Data, line: number, i: number, unit = 0): PlaceText {
  const marks = data.marks[line];
  if (!marks) return { head: "", lines: [] };
  const [begin, length] = [marks.begin[i] as number, marks.length[i] as number];
  const [of, max, what] = [marks.of[i] as number, marks.max[i] as number, name(data, marks.what[i] as number)];
  const lines = [length > 0 ? between(data, begin, begin + length) : `at ${clock(data.begin, begin, data.nanoseconds)}`];
  if (what) lines.unshift(what);
  if (!isScatter(marks)) {
    if (of > 1) lines.push(`${counted(of, "mark")} here${max > 0 ? `, the longest ${duration(max, data.nanoseconds)}` : ""}`);
    return { head: marks.label, lines };
  }
  const slow = isSlow(marks, i);
  if (slow) lines.push(`slow: ${duration(marks.slow, data.nanoseconds)} or more`);
  if (of > 1) lines.push(`${counted(of, "instance")} kept as one point, as high as the longest: ${duration(max, data.nanoseconds)}`);
  const around = unit > 0 ? aroundText(marks, i, unit, data.nanoseconds) : undefined;
  if (around) lines.push(around);
  const one = slow ? "a slow instance" : "an instance";
  return { head: `${marks.label}: ${of > 1 ? `${counted(of, "instance")}${slow ? ", at least 1 slow" : ""}` : one}`, lines };
}

/** As one sentence, for the line above the picture. */
export function sentence(placeText: PlaceText): string {
  return [placeText.head, ...placeText.lines].filter((one) => one !== "").join(" · ");
}

/** An event: the window that it is in, and its number there. */
export interface EventAt {
  window: number;
  index: number;
}

/** The event of a lane that is nearest to a time, if it is near. */
export function eventAt(data: Data, lane: number, time: number, near: number): EventAt | undefined {
  let best: EventAt | undefined;
  let distance = near;
  data.windows.forEach((window, at) => {
    for (let i = firstAbove(window.time, time - near); i < window.count; i++) {
      const away = Math.abs((window.time[i] as number) - time);
      if ((window.time[i] as number) > time + near) break;
      if (window.lane[i] !== lane || away > distance) continue;
      distance = away;
      best = { window: at, index: i };
    }
  });
  return best;
}

/** Says what an event is. */
export function event(data: Data, at: EventAt | undefined): PlaceText | undefined {
  const window = at && data.windows[at.window];
  if (!window) return undefined;
  const i = at.index;
  const time = clock(data.begin, window.time[i] as number, data.nanoseconds);
  const [cpu, tid] = [window.cpu[i] as number, window.tid[i] as number];
  const where = [cpu >= 0 ? `CPU ${cpu}` : "", tid >= 0 ? `thread ${tid}` : ""].filter(Boolean).join(", ");
  return { head: `${time}: ${name(data, window.name[i] as number)}`, lines: [name(data, window.text[i] as number), where].filter(Boolean) };
}
