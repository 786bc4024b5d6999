// Going from mark to mark.

import { type Data, type Marks, pick } from "./data.js";
import { isScatter, pointAt } from "./scatter.js";
import { tidOf } from "./wakes.js";

/** A mark by its line and number. */
export interface MarkAt {
  line: number;
  index: number;
}

/** Marks in the order of time: all, or those that are asked for. */
export class MarkList {
  readonly list: readonly (MarkAt & { time: number })[];

  constructor(data: Data, has: (marks: Marks, index: number) => boolean = () => true) {
    const found = data.marks.flatMap((marks, line) => [...marks.begin].map((time, index) => ({ time, line, index })));
    const asked = found.filter(({ line, index }) => has(data.marks[line] as Marks, index));
    this.list = asked.sort((a, b) => a.time - b.time || a.line - b.line || a.index - b.index);
  }

  /** Where to go from a mark, or from a time where none is chosen; nothing beyond the first and the last. */
  from(mark: MarkAt | undefined, time: number, by: number): number {
    const at = mark ? this.list.findIndex(({ line, index }) => line === mark.line && index === mark.index) : -1;
    return at < 0 ? this.near(time, by) : at + by;
  }

  /** The first mark after a time, or the last one before it. */
  near(time: number, by: number): number {
    const after = this.list.findIndex((mark) => mark.time >= time);
    const first = after < 0 ? this.list.length : after;
    return by > 0 ? (first < this.list.length ? first : 0) : first > 0 ? first - 1 : this.list.length - 1;
  }
}

/** Marks of one VM, by whom they are about; of all where it is "". What is of several or of nobody stays: it may be that VM's. */
export function marksOfVm(data: Data, lines: readonly Marks[], vm: string): Marks[] {
  const vmOf = new Map(data.lanes.map((lane) => [lane.id, lane.vm]));
  const ofName = data.names.map((text) => vmOf.get(`tid-${tidOf(text) ?? ""}`) ?? "");
  const isShown = (what: number): boolean => vm === "" || (ofName[what] ?? "") === "" || ofName[what] === vm;
  return lines.map((marks) => (marks.id.startsWith("path:") ? pick(marks, (i) => isShown(marks.what[i] as number)) : marks));
}

/** The mark that is at a time, or nearest to it within some pixels. */
export function markAt(marks: Marks | undefined, time: number, unit: number): number | undefined {
  if (!marks) return undefined;
  let best: number | undefined;
  let distance = 6 * unit;
  for (let i = 0; i < marks.count; i++) {
    const begin = marks.begin[i] as number;
    if (begin > time + distance) break;
    const end = begin + (marks.length[i] as number);
    // Of those that are over it, the shortest; else the nearest.
    const away = time >= begin && time <= end ? 0 : Math.min(Math.abs(time - begin), Math.abs(time - end));
    if (away <= distance) {
      distance = away;
      best = i;
    }
  }
  return best;
}

/** The mark of a row at a time, and, where points have heights, `y` pixels below the row's top; `unit` is the time that a pixel is. */
export function markNear(marks: Marks | undefined, row: { top: number; height: number }, time: number, unit: number, y?: number): number | undefined {
  if (marks && y !== undefined && isScatter(marks)) return pointAt(marks, { top: row.top, high: row.height }, time, y, unit);
  return markAt(marks, time, unit);
}
