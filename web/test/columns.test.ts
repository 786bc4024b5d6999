import assert from "node:assert/strict";
import { test } from "node:test";
import { first, fitting, LEAST, MOST, numbers, ofFindings } from "../src/columns.js";

const SAID = numbers("7681 times for its serial port, 1.892s in all:\n 9.29 % of its time, 246.3us each; p50 84.59ms");

test("numbers of a text are those that cells have", () => {
  assert.deepEqual([...SAID], ["7681", "1.892s", "9.29 %", "246.3us", "50", "84.59ms"]);
});

test("no column is hidden that has a finding's number", () => {
  const cells = ["0x3f8:POUT", "7681", "9.29 %", "1.892s", "17us"];
  // In a row that the finding links to: all of them. Elsewhere a small count may be the same by chance.
  assert.deepEqual([...ofFindings([{ cells, isLinked: true }], SAID)], [1, 2, 3]);
  assert.deepEqual([...ofFindings([{ cells, isLinked: false }], SAID)], [3]);
  assert.deepEqual([...ofFindings([{ cells: ["a", "50"], isLinked: false }], SAID)], []);
  const shown = first(23, MOST, new Set([3, 17]));
  assert.deepEqual(shown.flatMap((one, column) => (one ? [column] : [])), [...Array(MOST).keys(), 17]);
  assert.equal(first(23, LEAST, new Set([17])).filter(Boolean).length, LEAST + 1);
  assert.equal(first(4, MOST, new Set()).length, 4);
});

test("columns fit by one measure of them all", () => {
  const columns = Array.from({ length: MOST }, (_, column) => 100 + column);
  const table = columns.reduce((sum, width) => sum + width, 0);
  const none = new Set<number>();
  assert.equal(fitting({ room: table, table, columns }, none), MOST);
  // The parts of a pixel that a browser rounds hide nothing.
  assert.equal(fitting({ room: table - 0.4, table, columns }, none), MOST);
  assert.equal(fitting({ room: table - 1, table, columns }, none), MOST - 1);
  assert.equal(fitting({ room: table - 109, table, columns }, none), MOST - 1);
  assert.equal(fitting({ room: table - 110, table, columns }, none), MOST - 2);
  assert.equal(fitting({ room: 10, table, columns }, none), LEAST);
  // What is kept takes its room, and the next one goes.
  assert.equal(fitting({ room: table - 1, table, columns }, new Set([MOST - 1])), MOST - 2);
  assert.equal(fitting({ room: 10, table: 700, columns: columns.slice(0, 4) }, none), 4);
});
