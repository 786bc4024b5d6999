// What states add up to: of a range, and of every pixel column of a picture. Nothing is sampled: every stretch counts
// with the time that it has there.

import type { Cells, Kind } from "./data.js";

/** The first of sorted numbers that is greater than a limit. */
export function firstAbove(sorted: Float64Array, limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Time by state. */
export interface Sum {
  ns: Float64Array;
  total: number;
  /** How many stretches; of sums that are only partly within, their part, rounded. */
  stretches: number;
  /** False where an end of the range is within a sum: its states are then taken to be spread evenly. */
  exact: boolean;
}

/** Adds what a lane did between two times. */
export function add(into: Sum, cells: Cells, from: number, to: number): void {
  const { begin, end, kind, a, b, c, sumKind, sumNs } = cells;
  for (let i = firstAbove(end, from); i < cells.count; i++) {
    const first = begin[i] as number;
    if (first >= to) break;
    const last = end[i] as number;
    const inside = Math.min(last, to) - Math.max(first, from);
    const state = kind[i] as number;
    into.total += inside;
    if (state >= 0) {
      into.ns[state] = (into.ns[state] as number) + inside;
      into.stretches++;
      continue;
    }
    const whole = last - first;
    const part = whole > 0 ? inside / whole : 1;
    if (part < 1) into.exact = false;
    into.stretches += part < 1 ? Math.round((c[i] as number) * part) : (c[i] as number);
    const stop = (a[i] as number) + (b[i] as number);
    for (let at = a[i] as number; at < stop; at++) {
      const state = sumKind[at] as number;
      into.ns[state] = (into.ns[state] as number) + (sumNs[at] as number) * part;
    }
  }
}

/** What a lane did between two times. */
export function sums(cells: Cells, kinds: number, from: number, to: number): Sum {
  const sum: Sum = { ns: new Float64Array(kinds), total: 0, stretches: 0, exact: true };
  add(sum, cells, from, to);
  return sum;
}

/** What a lane did in a range, by the ids of states. */
export interface Sums {
  states: Record<string, number>;
  total: number;
  stretches: number;
  exact: boolean;
}

/** The same as `sums`, by the ids of states. */
export function byState(cells: Cells, kinds: readonly Kind[], from: number, to: number): Sums {
  const sum = sums(cells, kinds.length, from, to);
  const states: Record<string, number> = {};
  sum.ns.forEach((ns, kind) => {
    const id = kinds[kind]?.id;
    if (id && ns > 0) states[id] = (states[id] ?? 0) + ns;
  });
  return { states, total: sum.total, stretches: sum.stretches, exact: sum.exact };
}

/** The cell at a time; -1 where there is none. */
export function cellAt(cells: Cells, time: number): number {
  const i = firstAbove(cells.end, time);
  return i < cells.count && (cells.begin[i] as number) <= time ? i : -1;
}

/** States that a lane may have: those of vCPUs, of threads, of CPUs or of guests, which stand together. */
export interface States {
  first: number;
  count: number;
}

/** The states that lanes have. */
export function statesOf(lanes: readonly Cells[]): States {
  let first = Infinity;
  let last = -1;
  const note = (kind: number): void => {
    if (kind < 0) return;
    if (kind < first) first = kind;
    if (kind > last) last = kind;
  };
  for (const { kind, sumKind } of lanes) {
    kind.forEach(note);
    sumKind.forEach(note);
  }
  return last < 0 ? { first: 0, count: 1 } : { first, count: last - first + 1 };
}

/**
 * Adds, for each of `width` columns between two times, which part of it every state takes:
 * `into[column * states.count + state - states.first]`. Cells of at least `wide` pixels are put into `found`: they have room for
 * a border and a label.
 */
export function columns(
  into: Float64Array,
  cells: Cells,
  states: States,
  from: number,
  to: number,
  width: number,
  wide = Infinity,
  found: number[] = [],
): void {
  const { begin, end, kind, a, b, sumKind, sumNs } = cells;
  const { first: least, count: stride } = states;
  const scale = width / (to - from);
  const stretch = (state: number, x0: number, x1: number, weight: number): void => {
    const c0 = Math.floor(x0);
    const c1 = Math.floor(x1);
    let at = c0 * stride + state;
    if (c0 === c1) {
      into[at] = (into[at] as number) + (x1 - x0) * weight;
      return;
    }
    into[at] = (into[at] as number) + (c0 + 1 - x0) * weight;
    const last = c1 * stride + state;
    for (at += stride; at < last; at += stride) into[at] = (into[at] as number) + weight;
    if (c1 < width) into[last] = (into[last] as number) + (x1 - c1) * weight;
  };
  for (let i = firstAbove(end, from); i < cells.count; i++) {
    const first = begin[i] as number;
    if (first >= to) break;
    const last = end[i] as number;
    const x0 = first <= from ? 0 : (first - from) * scale;
    const x1 = last >= to ? width : (last - from) * scale;
    if (x1 - x0 >= wide) found.push(i);
    const state = kind[i] as number;
    if (state >= 0) {
      // What most stretches are when much is shown: within one column.
      const column = x0 | 0;
      if (column === (x1 | 0)) {
        const at = column * stride + state - least;
        into[at] = (into[at] as number) + (x1 - x0);
      } else stretch(state - least, x0, x1, 1);
      continue;
    }
    const whole = last - first;
    const stop = (a[i] as number) + (b[i] as number);
    for (let at = a[i] as number; at < stop; at++) {
      stretch((sumKind[at] as number) - least, x0, x1, whole > 0 ? (sumNs[at] as number) / whole : 0);
    }
  }
}
