import assert from "node:assert/strict";
import { test } from "node:test";
import { MarkList } from "../src/timeline/marks.js";
import { rows } from "../src/timeline/rows.js";
import { crowd, draw, isScatter, isSlow, part, pointAt, rangeText, scaleOf, yOf } from "../src/timeline/scatter.js";
import type { Palette } from "../src/timeline/palette.js";
import { mark, sentence } from "../src/timeline/tell.js";
import { View } from "../src/timeline/view.js";
import { chance, data } from "./support.js";

/** Four instances, the third one of five kept together, and the last one slow. */
const LIST = [100, 10, 1, 10, 2, 50, 1000, 1, 1000, 0, 850, 4000, 5, 2000, 2, 9000, 100_000, 1, 100_000, 0];
const SAMPLE = data([[{ begin: 0, end: 200_000, kind: 0, count: 1 }]], {
  marks: [
    { id: "path:irq", label: "irq", slow_ns: 50_000, marks: LIST },
    { id: "lost", label: "lost", marks: [5, 0, 1, 0, 0] },
    { id: "path:none", label: "none", marks: [5, 3, 1, 3, 0] },
  ],
});
const [IRQ, LOST, NONE] = SAMPLE.marks as [typeof SAMPLE.marks[0], typeof SAMPLE.marks[0], typeof SAMPLE.marks[0]];

test("points lie on a logarithmic scale of what their line has", () => {
  assert.deepEqual([isScatter(IRQ), isScatter(LOST), isScatter(NONE), isScatter(undefined)], [true, false, true, false]);
  const scale = scaleOf(IRQ!);
  assert.deepEqual([10, 100, 1000, 10_000, 100_000].map((ns) => part(scale, ns)), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual([part(scale, 0), part(scale, 1e12)], [0, 1]);
  const band = { top: 20, high: 50 };
  assert.deepEqual([10, 1000, 100_000].map((ns) => yOf(band, scale, ns)), [65, 45, 25]);
  // A line on which all took the same.
  assert.equal(part(scaleOf(NONE!), 3), 0.5);
  assert.equal(rangeText(IRQ!, true), "10ns–100.0us, slow ≥ 50.00us");
  assert.equal(rangeText(NONE!, true), "1ns–9ns");
});

test("counts of a range are those of all instances that began in it, however far one has zoomed", () => {
  const random = chance(11);
  let time = 0;
  const list: number[] = [];
  const all: { begin: number; of: number; max: number }[] = [];
  for (let i = 0; i < 400; i++) {
    const [gap, of, max] = [Math.floor(random() * 1000), random() < 0.2 ? 2 + Math.floor(random() * 9) : 1, 1 + Math.floor(random() ** 6 * 1e6)];
    time += gap;
    list.push(gap, max, of, max, 0);
    all.push({ begin: time, of, max });
  }
  const many = data([[{ begin: 0, end: time + 1, kind: 0, count: 1 }]], { marks: [{ id: "path:p", label: "p", slow_ns: 100_000, marks: list }] }).marks[0]!;
  for (let span = time + 1; span > 200; span /= 3) {
    // Pieces that lie side by side add up to the whole.
    let [count, slow] = [0, 0];
    for (let from = 0; from <= time; from += span) {
      const found = crowd(many, from, from + span);
      const inside = all.filter((one) => one.begin >= from && one.begin < from + span);
      assert.equal(found.count, inside.reduce((sum, one) => sum + one.of, 0));
      assert.equal(found.longest, Math.max(0, ...inside.map((one) => one.max)));
      assert.equal(found.exact, inside.every((one) => one.of === 1 || one.max < 100_000));
      count += found.count;
      slow += found.slow;
    }
    assert.equal(count, all.reduce((sum, one) => sum + one.of, 0));
    assert.equal(slow, all.filter((one) => one.max >= 100_000).length);
  }
});

test("the point that is meant is the one that is near in time and in height", () => {
  const band = { top: 0, high: 50 };
  // A nanosecond a pixel: the first at the foot, and nothing above it.
  assert.equal(pointAt(IRQ!, band, 103, 44, 1), 0);
  assert.equal(pointAt(IRQ!, band, 103, 20, 1), undefined);
  // Its time goes on to its end.
  assert.equal(pointAt(IRQ!, band, 60_000, 5, 1), 3);
  assert.equal(pointAt(IRQ!, band, 60_000, 30, 1), undefined);
  // All of it in 100 pixels: two lie side by side, and heights tell them apart.
  assert.equal(pointAt(IRQ!, band, 130, 44, 2000), 0);
  assert.equal(pointAt(IRQ!, band, 130, 25, 2000), 1);
});

test("slow ones are gone through by themselves", () => {
  const slow = new MarkList(SAMPLE, isSlow);
  assert.deepEqual(slow.list.map(({ line, index }) => [line, index]), [[0, 3]]);
  assert.equal(slow.from(undefined, 0, 1), 0);
  // From another mark that is chosen: the next slow one after it.
  assert.equal(slow.from({ line: 0, index: 0 }, 100, 1), 0);
  assert.equal(slow.list[slow.from({ line: 0, index: 3 }, 10_000, 1)], undefined);
});

test("what is said of a point", () => {
  assert.equal(sentence(mark(SAMPLE, 0, 3)), "irq: a slow instance · 100.0us, from 443.995743142 to 443.995843142 · slow: 50.00us or more");
  const several = mark(SAMPLE, 0, 2);
  assert.equal(several.head, "irq: 5 instances");
  assert.ok(several.lines.includes("5 instances kept as one point, as high as the longest: 2.000us"));
  assert.ok(mark(SAMPLE, 0, 0, 1000).lines.includes("began within 3 pixels: 7 instances, 0 slow, the longest 2.000us"));
});

test("rows of points are high, and say their range", () => {
  const all = rows(SAMPLE, new Set());
  assert.deepEqual(all.slice(1, 4).map((row) => [row.label, row.height, row.detail !== ""]), [["irq", 46, true], ["lost", 18, false], ["none", 46, true]]);
  all.slice(1).forEach((row, at) => assert.equal(row.top, all[at]!.top + all[at]!.height));
});

test("each point is drawn at its time and height, and slow ones otherwise than the others", () => {
  const paths: [string, number, number][] = [];
  class Shapes {
    rect(x: number, y: number, width: number): void {
      paths.push([width === 3 ? "one" : "several", x + width / 2, y + width / 2]);
    }
  }
  (globalThis as unknown as { Path2D: unknown }).Path2D = Shapes;
  const tips: [number, number][] = [];
  const nothing = (): void => undefined;
  const context = { setLineDash: nothing, beginPath: nothing, lineTo: nothing, stroke: nothing, fill: nothing, fillRect: nothing, closePath: nothing, arc: nothing,
    moveTo: (x: number, y: number) => tips.push([x, y]) } as unknown as CanvasRenderingContext2D;
  draw(context, IRQ!, { top: 0, high: 50 }, new View(200_000), 2000, {} as Palette, -1);
  assert.deepEqual(paths.map(([shape, x, y]) => [shape, x, Math.round(y)]), [["one", 1, 45], ["one", 1.5, 25], ["several", 10, 22]]);
  // The threshold's line, and the diamond's tip above its middle.
  assert.deepEqual(tips.map(([x, y]) => [x, Math.round(y)]), [[0, 9], [100, 1]]);
  // None is drawn that is out of sight.
  paths.length = 0;
  const near = new View(200_000);
  near.set(500, 5000);
  draw(context, IRQ!, { top: 0, high: 50 }, near, 2000, {} as Palette, -1);
  assert.deepEqual(paths.map(([shape]) => shape), ["one", "several"]);
});
