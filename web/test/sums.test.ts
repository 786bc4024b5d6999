import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { bytes, read } from "../src/timeline/data.js";
import { cellAt, columns, type States, statesOf, sums } from "../src/timeline/sums.js";
import { chance, data, document, type Piece, pieces, written } from "./support.js";

const KINDS = 4;
const STATES: States = { first: 0, count: KINDS };

/** What pieces add up to between two times, the slow way. */
function slow(list: readonly Piece[], from: number, to: number): number[] {
  const out = new Array<number>(KINDS).fill(0);
  for (const piece of list) {
    const inside = Math.min(piece.end, to) - Math.max(piece.begin, from);
    if (inside <= 0) continue;
    const parts = piece.parts ?? [[piece.kind, piece.end - piece.begin] as [number, number]];
    for (const [kind, ns] of parts) out[kind] = (out[kind] ?? 0) + (ns * inside) / (piece.end - piece.begin);
  }
  return out;
}

function near(a: ArrayLike<number>, b: ArrayLike<number>, within: number): void {
  assert.equal(a.length, b.length);
  for (let i = 0; i < a.length; i++) assert.ok(Math.abs((a[i] ?? 0) - (b[i] ?? 0)) <= within, `${i}: ${a[i]} and ${b[i]}`);
}

test("sums equal what is counted one by one", () => {
  const random = chance(1);
  for (let run = 0; run < 200; run++) {
    const list = pieces(random, 1 + Math.floor(random() * 60), KINDS);
    const { cells } = data([list]).lanes[0]!;
    const length = list[list.length - 1]!.end;
    const [a, b] = [random() * length * 1.2 - length * 0.1, random() * length * 1.2 - length * 0.1];
    const [from, to] = [Math.min(a, b), Math.max(a, b)];
    near(sums(cells, KINDS, from, to).ns, slow(list, from, to), 1e-6 * length);
    const whole = sums(cells, KINDS, 0, length);
    // Whole numbers, to the nanosecond.
    assert.deepEqual([...whole.ns], slow(list, 0, length).map(Math.round));
    assert.ok(whole.exact);
    assert.equal(whole.stretches, list.reduce((sum, piece) => sum + piece.count, 0));
  }
});

test("every column is a sum, and together they are all of it", () => {
  const random = chance(2);
  for (let run = 0; run < 200; run++) {
    const list = pieces(random, 1 + Math.floor(random() * 400), KINDS);
    const { cells } = data([list]).lanes[0]!;
    const length = list[list.length - 1]!.end;
    const from = random() * length * 0.5;
    const to = from + 1 + random() * (length - from);
    const width = 1 + Math.floor(random() * 300);
    const found = new Float64Array(width * KINDS);
    columns(found, cells, STATES, from, to, width);
    const unit = (to - from) / width;
    for (let x = 0; x < width; x++) {
      const known = slow(list, from + x * unit, from + (x + 1) * unit).map((ns) => ns / unit);
      near(found.subarray(x * KINDS, (x + 1) * KINDS), known, 1e-6);
    }
  }
});

test("wide cells are placeText", () => {
  const list: Piece[] = [{ begin: 0, end: 10, kind: 0, count: 1 }, { begin: 10, end: 90, kind: 1, count: 1 }, { begin: 90, end: 100, kind: 0, count: 1 }];
  const { cells } = data([list]).lanes[0]!;
  const found: number[] = [];
  columns(new Float64Array(10 * KINDS), cells, STATES, 0, 100, 10, 5, found);
  assert.deepEqual(found, [1]);
});

test("states that lanes do not have take no room", () => {
  const list: Piece[] = [{ begin: 0, end: 10, kind: 2, count: 1 }, { begin: 10, end: 20, kind: -1, parts: [[2, 5], [3, 5]], count: 9 }];
  const { cells } = data([list]).lanes[0]!;
  const states = statesOf([cells]);
  assert.deepEqual(states, { first: 2, count: 2 });
  assert.deepEqual(statesOf([]), { first: 0, count: 1 });
  const found = new Float64Array(4);
  columns(found, cells, states, 0, 20, 2);
  assert.deepEqual([...found], [1, 0, 0.5, 0.5]);
});

test("cells are found by their time", () => {
  const list: Piece[] = [{ begin: 5, end: 10, kind: 0, count: 1 }, { begin: 20, end: 30, kind: -1, parts: [[1, 4], [2, 6]], count: 9 }];
  const { cells } = data([list]).lanes[0]!;
  assert.deepEqual([0, 5, 9.9, 10, 15, 20, 30].map((time) => cellAt(cells, time)), [-1, 0, 0, -1, -1, 1, -1]);
  const part = sums(cells, KINDS, 20, 25);
  assert.deepEqual([...part.ns], [0, 2, 3, 0]);
  assert.equal(part.exact, false);
});

test("what is packed comes out again", () => {
  const list = pieces(chance(3), 50, KINDS);
  const json = JSON.stringify(document([list], {
    marks: [{ id: "lost", label: "lost", marks: [5, 1, 1, 1, 0, 7, 2, 3, 4, 1] }],
    windows: [{ begin: 100, end: 200, why: "x", events: [1, 0, 5, 0, 1, 2, 4, -1, 6, -1, 1, 2] }],
  }));
  const packed = deflateRawSync(json).toString("base64");
  const back = read(inflateRawSync(bytes(`\n${packed}\n`)).toString());
  assert.equal(back.begin, 443_995_733_142n);
  const { cells } = back.lanes[0]!;
  assert.deepEqual([...cells.begin], list.map((piece) => piece.begin));
  assert.deepEqual([...cells.end], list.map((piece) => piece.end));
  assert.deepEqual([...back.marks[0]!.begin], [5, 12]);
  assert.deepEqual([...back.marks[0]!.of], [1, 3]);
  assert.deepEqual([...back.windows[0]!.time], [101, 105]);
  assert.deepEqual([...back.windows[0]!.cpu], [0, -1]);
  assert.equal(written(list).length > 0, true);
});

test("data of another version, and lists that are cut off, are no catastrophe", () => {
  assert.throws(() => read(JSON.stringify({ ...document([]), version: 2 })), /version 2/);
  const cut = document([]);
  cut["lanes"] = [{ id: "a", group: "vcpus", label: "a", cells: [1, 2] }];
  assert.equal(read(JSON.stringify(cut)).lanes[0]!.cells.count, 0);
});
