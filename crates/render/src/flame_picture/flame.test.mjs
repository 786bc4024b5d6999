// Tests of flame.js without a document: node --test crates/render/src/flame_picture/flame.test.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const script = readFileSync(new URL("flame.js", import.meta.url), "utf8");
const context = vm.createContext({});
vm.runInContext(script, context);
const { flame } = context;

// all 100: a 60 (b 40 (a 30), 2 smaller frames 10), c 40 (b 40).
const data = {
  unit: "ns",
  names: ["a", "b", "c"],
  level: [0, 1, 2, 3, 2, 1, 2],
  name: [0, 0, 1, 0, -2, 2, 1],
  kind: "tkkkskk",
  noise: "",
  samples: [[10, 6, 4, 3, 1, 4, 4]],
  amount: [[100, 60, 40, 30, 10, 40, 40]],
  words: { t: "", k: "host kernel", s: "" },
  marks: { t: "T", k: "K", s: "…" },
};
const layout = flame.layOut(data, 0);
const plain = (value) => JSON.parse(JSON.stringify(value));

test("boxes begin where those before them end", () => {
  assert.deepEqual([...layout.start], [0, 0, 0, 0, 40, 60, 60]);
  assert.deepEqual([...layout.parent], [-1, 0, 1, 2, 1, 0, 5]);
});

test("what is zoomed on is as wide as the picture, and what is narrow does not show", () => {
  const boxes = (root, least) => plain(flame.visible(data, layout, root, 1000, least)).map(({ i, x, width }) => [i, x, width]);
  assert.deepEqual(boxes(0, 350), [[0, 0, 1000], [1, 0, 600], [2, 0, 400], [5, 600, 400], [6, 600, 400]]);
  assert.deepEqual(boxes(2, 1), [[0, 0, 1000], [1, 0, 1000], [2, 0, 1000], [3, 0, 750]]);
});

test("narrow boxes side by side are drawn together", () => {
  const rows = (root, least) => plain(flame.narrow(data, layout, root, 100, least)).map(({ of, x, width, count }) => [of, x, width, count]);
  // On 1 lie 40 and 10, each too narrow by itself.
  assert.deepEqual(rows(0, 45), [[1, 0, 50, 2]]);
  assert.deepEqual(rows(0, 35), []);
  assert.deepEqual(rows(1, 20), []);
});

test("a stack counts once, however often it matches", () => {
  const hits = (name) => plain(data.name).map((n, i) => i > 0 && n >= 0 && data.names[n] === name);
  assert.equal(flame.matched(data, layout, 0, hits("a")), 60);
  assert.equal(flame.matched(data, layout, 0, hits("b")), 80);
  assert.equal(flame.matched(data, layout, 2, hits("b")), 40);
  assert.equal(flame.matched(data, layout, 3, hits("b")), 30);
});

test("a search is a regular expression, or plain text", () => {
  assert.equal(flame.matcher("^tcp_")("tcp_sendmsg"), true);
  assert.equal(flame.matcher("TCP")("tcp_sendmsg"), false);
  assert.equal(flame.matcher("kvm")("CPU 0/KVM"), true);
  assert.equal(flame.matcher("a(b")("xa(by"), true);
  assert.equal(flame.matcher("[guest]")("e"), true);
});

test("words are those of the program", () => {
  const times = [[0, "0ns"], [999, "999ns"], [1500, "1.500us"], [76060, "76.06us"], [436400000, "436.4ms"], [999960, "1.000ms"], [1234e9, "1234s"]];
  for (const [ns, text] of times) assert.equal(flame.time(ns), text);
  assert.equal(flame.describe(data, 3), "a (host kernel): 30ns, 30.00 %, 3 samples");
  assert.equal(flame.describe(data, 4), "2 smaller frames: 10ns, 10.00 %, 1 sample");
  assert.equal(flame.fit("tcp_sendmsg", 40), "tcp_s…");
  assert.equal(flame.fit("日本語の名前", 40), "日本…");
  assert.equal(flame.label(data, layout, 1, 200), "K a");
  assert.equal(flame.label(data, layout, 2, 200), "b");
});

test("changes have their sign", () => {
  const two = { ...data, samples: [data.samples[0], [20, 12, 8, 6, 2, 8, 8]], amount: [data.amount[0], [200, 60, 40, 40, 0, 140, 140]], noise: "0000001" };
  assert.equal(flame.changeOf(two, 1), "−30.00");
  assert.equal(flame.changeOf(two, 5), "+30.00");
  assert.equal(flame.changeOf(two, 0), "±0.00");
  const said = "b (host kernel): A 40.00 % (4 samples), B 70.00 % (8 samples), +30.00 points, which may be noise";
  assert.equal(flame.describe(two, 6), said);
});
