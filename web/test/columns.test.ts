import assert from "node:assert/strict";
import { test } from "node:test";
import { first, LEAST, MOST, numbers, ofFindings } from "../src/columns.js";

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
