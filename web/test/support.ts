// Data of timelines, made by hand and by chance.

import { read, type Data } from "../src/timeline/data.js";

/** Numbers by chance, the same in each run (Numerical Recipes' linear congruential generator). */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A stretch as it is before it is written: `parts` where it is a sum. */
export interface Piece {
  begin: number;
  end: number;
  kind: number;
  parts?: [number, number][];
  count: number;
}

/** Pieces of one lane: stretches, sums and gaps. */
export function pieces(random: () => number, count: number, kinds: number): Piece[] {
  const out: Piece[] = [];
  let time = 0;
  for (let i = 0; i < count; i++) {
    if (random() < 0.1) time += Math.floor(random() * 5000);
    const length = 1 + Math.floor(random() ** 3 * 20_000);
    const begin = time;
    time += length;
    if (random() < 0.3) {
      const first = Math.floor(random() * kinds);
      const second = (first + 1) % kinds;
      const one = Math.floor(random() * length);
      out.push({ begin, end: time, kind: -1, parts: [[first, one], [second, length - one]], count: 2 + Math.floor(random() * 50) });
    } else out.push({ begin, end: time, kind: Math.floor(random() * kinds), count: 1 });
  }
  return out;
}

/** Pieces as the page has them. */
export function written(list: readonly Piece[]): number[] {
  let before = 0;
  return list.flatMap((piece) => {
    const head = [piece.begin - before, piece.end - piece.begin];
    before = piece.end;
    return piece.parts ? [...head, -piece.parts.length, piece.count, ...piece.parts.flat()] : [...head, piece.kind, 1, 0, 3];
  });
}

/** A document. */
export function document(lanes: readonly (readonly Piece[])[], more: object = {}): Record<string, unknown> {
  const last = lanes.map((lane) => lane[lane.length - 1]?.end ?? 1);
  return {
    version: 1,
    begin_ns: "443995733142",
    length_ns: Math.max(1, ...last),
    nanoseconds: true,
    names: ["", "HLT", "sleep:2271"],
    kinds: ["guest", "kernel", "halted", "unknown"].map((id) => ({ id, label: id, of: "vcpu" })),
    lanes: lanes.map((lane, i) => ({ id: `tid-${i}`, group: "vcpus", label: `a vCPU ${i}`, detail: "", vm: "a", cells: written(lane) })),
    marks: [],
    windows: [],
    notes: [],
    ...more,
  };
}

/** Data of lanes. */
export function data(lanes: readonly (readonly Piece[])[], more: object = {}): Data {
  return read(JSON.stringify(document(lanes, more)));
}
