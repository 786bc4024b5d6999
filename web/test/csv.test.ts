import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned, cell, csv, neutral } from "../src/csv.js";
import { order } from "../src/tables.js";

// The same as in crates/render/src/neutral.rs.
test("cells are no formulas", () => {
  const known: [string, string][] = [
    ["=1+1", "'=1+1"], ["@SUM(A1)", "'@SUM(A1)"], ["+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"], ["-2+3", "'-2+3"], ["\t=1", "'\\x09=1"],
    ["-12", "-12"], ["-0.5", "-0.5"], ["-1e3", "-1e3"], ["-", "-"], ["a=b", "a=b"], ["a\nb", "a\nb"],
  ];
  for (const [text, shown] of known) assert.equal(cell(text), shown);
});

test("what steers is shown and all else stays", () => {
  const ordinary = "CPU 0/KVM é → 日本 \\x1b 'a'";
  assert.equal(neutral(ordinary), ordinary);
  assert.equal(neutral("\x1b[31mred\x07\n"), "\\x1b[31mred\\x07\\x0a");
  assert.equal(neutral("a\u202eb\u2066c\u200f"), "a\\u{202e}b\\u{2066}c\\u{200f}");
});

test("rows are quoted (RFC 4180)", () => {
  assert.equal(csv([["a", "b,c", 'd"e'], ["1", "x\ny", ""]]), 'a,"b,c","d""e"\n1,"x\ny",\n');
  assert.equal(csv([["=cmd|' /C calc'!A0, \"x\""]]), '"\'=cmd|\' /C calc\'!A0, ""x"""\n');
});

test("text lines up", () => {
  assert.equal(aligned([["reason", "count"], ["HLT", "5"], ["日本", "12345"]], [false, true]), "reason  count\nHLT         5\n日本      12345\n");
});

test("rows are sorted by exact values, and empty ones are last", () => {
  const sorted = (list: string[], isNumber: boolean, sign: number): string[] => [...list].sort((a, b) => order(a, b, isNumber, sign));
  assert.deepEqual(sorted(["10", "9", "", "0.5", "100"], true, 1), ["0.5", "9", "10", "100", ""]);
  assert.deepEqual(sorted(["10", "9", "", "0.5", "100"], true, -1), ["100", "10", "9", "0.5", ""]);
  assert.deepEqual(sorted(["9007199254740993", "9007199254740992"], true, 1), ["9007199254740992", "9007199254740993"]);
  assert.deepEqual(sorted(["CPU 10", "CPU 9", ""], false, 1), ["CPU 9", "CPU 10", ""]);
});
