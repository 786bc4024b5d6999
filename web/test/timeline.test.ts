import assert from "node:assert/strict";
import { test } from "node:test";
import { align } from "../src/plots.js";
import { find } from "../src/timeline/find.js";
import { columnWidth, Letters } from "../src/timeline/labels.js";
import { items } from "../src/timeline/legend.js";
import { MarkList, markAt } from "../src/timeline/marks.js";
import { luminance, parseColour, type Palette } from "../src/timeline/palette.js";
import { box, hatch, lane as drawLane } from "../src/timeline/raster.js";
import { foldedAtFirst, groupsOf, height, place, rowAt, rows } from "../src/timeline/rows.js";
import { cell, eventAt, lanes, sentence } from "../src/timeline/tell.js";
import { View } from "../src/timeline/view.js";
import { data, type Piece } from "./support.js";

const LIST: Piece[] = [
  { begin: 0, end: 1000, kind: 0, count: 1 },
  { begin: 1000, end: 5000, kind: -1, parts: [[1, 1000], [2, 3000]], count: 12 },
  { begin: 5000, end: 5010, kind: 1, count: 1 },
  { begin: 5010, end: 5030, kind: 2, count: 1 },
];

const SAMPLE = data([LIST, [{ begin: 0, end: 10_000, kind: 2, count: 1 }]], {
  marks: [{ id: "findings", label: "findings", marks: [100, 50, 1, 50, 2, 4000, 0, 3, 9, 1] }, { id: "lost", label: "lost", marks: [200, 0, 1, 0, 0] }],
  windows: [{ begin: 0, end: 6000, why: "x", events: [100, 3, 1700, 0, 1, 2, 50, 3, 1700, -1, 1, 0] }],
});

test("a view stays within the recording", () => {
  const view = new View(1_000_000);
  view.set(-500, 500);
  assert.deepEqual([view.from, view.to], [0, 1000]);
  view.set(5, 6);
  assert.equal(view.span, 100);
  view.set(0, 1e12);
  assert.deepEqual([view.from, view.to], [0, 1_000_000]);
  view.set(NaN, 5);
  assert.equal(view.span, 1_000_000);
  view.zoom(0.5, 250_000);
  assert.deepEqual([view.from, view.to], [125_000, 625_000]);
  view.zoom(1 / 1.7, 200_000);
  view.zoom(1.7, 200_000);
  assert.ok(Math.abs(view.from - 125_000) < 1e-6);
  view.pan(10);
  assert.equal(view.to, 1_000_000);
  view.zoom(100, 900_000);
  assert.deepEqual([view.from, view.to], [0, 1_000_000]);
  const tiny = new View(5);
  tiny.zoom(0.1, 2);
  assert.deepEqual([tiny.from, tiny.to], [0, 5]);
});

test("what is placeText of a stretch, of a sum and of several", () => {
  const [lane] = SAMPLE.lanes;
  assert.equal(sentence(cell(SAMPLE, lane!, 0)), "a vCPU 0: guest · HLT · 1.000us, from 443.995733142 to 443.995734142 · on CPU 3");
  const sum = cell(SAMPLE, lane!, 1);
  assert.equal(sum.head, "a vCPU 0: 12 stretches, kept as a sum");
  assert.deepEqual(sum.lines.slice(0, 2), ["halted: 3.000us (75.00 %)", "kernel: 1.000us (25.00 %)"]);
  // A pixel that is wider than both of the last: to whole stretches.
  const both = lanes(SAMPLE, [0], "a vCPU 0", 5020, 100);
  assert.equal(both?.head, "a vCPU 0: 14 stretches");
  assert.equal(lanes(SAMPLE, [0], "a vCPU 0", 8000, 10), undefined);
  // Of a folded group it is the pixel, in which a sum may lie only in part.
  assert.equal(lanes(SAMPLE, [0, 1], "vCPUs", 2000, 1000)?.head, "vCPUs: about 4 stretches");
});

test("lanes stand below their VM, guests below their vCPU, and what is of no VM after them", () => {
  const cells: number[] = [0, 10, 0, 0, 0, -1];
  const lane = (id: string, group: string, label: string, vm = ""): object => ({ id, group, label, detail: "", vm, cells });
  const lanes = [
    lane("tid-1", "vcpus", "a vCPU 0", "a"), lane("guest-tid-1", "guests", "guest of a vCPU 0"), lane("tid-2", "vcpus", "b vCPU 0", "b"),
    lane("tid-3", "threads", "ssh"), lane("tid-4", "threads", "vhost-9", "a"), lane("cpu-0", "cpus", "CPU 0"),
  ];
  const some = data([], { lanes, without_lane: 44 });
  const labels = (folded: string[], vm = ""): string[] => rows(some, new Set(folded), vm).map((row) => row.label);
  const ofA = ["a", "a vCPU 0", "guest of a vCPU 0", "vhost-9"];
  const rest = ["Other threads (1)", "ssh", "44 other threads", "CPUs (1)", "CPU 0"];
  assert.deepEqual(labels([]), [...ofA, "b", "b vCPU 0", ...rest]);
  assert.deepEqual(labels(["vm:a", "vm:b", "threads"]), [ofA[0], "b", "Other threads (1)", "CPUs (1)", "CPU 0"]);
  // One VM alone: with the CPUs, which all share.
  assert.deepEqual(labels([], "b"), ["b", "b vCPU 0", "CPUs (1)", "CPU 0"]);
  // A VM's row adds up its vCPUs alone, and what is left out has a row, and no lane.
  const all = rows(some, new Set());
  assert.deepEqual([all[0]?.lanes, all[0]?.detail], [[0], "1 vCPU, 1 thread"]);
  const left = all.find((row) => row.type === "left");
  assert.deepEqual([left?.label, left?.lanes], ["44 other threads", []]);
  assert.equal(rows(data([], { lanes }), new Set()).some((row) => row.type === "left"), false);
  assert.deepEqual(groupsOf(some), ["vm:a", "vm:a", "vm:b", "threads", "vm:a", "cpus"]);
});

test("many VMs are folded when a page opens", () => {
  const some = (n: number) => data([], { lanes: Array.from({ length: n }, (_, i) => ({ id: `tid-${i}`, group: "vcpus", label: "x", vm: `vm ${i}`, cells: [0, 1, 0, 0, 0, 0] })) });
  assert.equal(foldedAtFirst(some(8)).size, 0);
  assert.equal(foldedAtFirst(some(64)).size, 64);
  assert.equal(rows(some(64), foldedAtFirst(some(64))).length, 64);
});

test("rows are folded and found, and those with long names are higher", () => {
  const all = rows(SAMPLE, new Set());
  assert.deepEqual(all.map((row) => `${row.type} ${row.label}`), ["group Marks", "marks findings", "marks lost", "events other events", "group a", "lane a vCPU 0", "lane a vCPU 1"]);
  assert.deepEqual(rows(SAMPLE, new Set(["vm:a", "marks"])).map((row) => row.label), ["Marks", "a"]);
  place(all, new Map([[5, 40], [1, 2]]));
  assert.deepEqual(all.map((row) => row.height), [22, 18, 18, 18, 22, 40, 22]);
  for (const row of all) {
    assert.equal(rowAt(all, row.top), row);
    assert.equal(rowAt(all, row.top + row.height - 1), row);
  }
  assert.equal(rowAt(all, height(all)), undefined);
  assert.equal(rowAt(all, -1), undefined);
});

test("names have the room that they need, and details only where there is room for all of them", () => {
  assert.equal(columnWidth([90, 200], [150, 320], 1000), 200);
  assert.equal(columnWidth([90, 200], [150, 260], 1000), 260);
  // Not more than a part of what there is; names that are longer take several lines.
  assert.equal(columnWidth([900], [900], 1000), 450);
  assert.equal(columnWidth([20], [20], 200), 120);
});

test("a look of the legend has one meaning, and threads of VMs are no other task", () => {
  const lanes = [["vcpus", "a"], ["threads", "a"], ["threads", ""]].map(([group, vm], i) => ({ id: `tid-${i}`, group, label: "x", vm, cells: [0, 1, 0, 0, 0, 0] }));
  const kinds = [["guest", "vcpu", "in guest"], ["runnable", "vcpu", "waiting for a CPU"], ["running", "thread", "running"], ["runnable", "thread", "waiting for a CPU"], ["vcpu", "cpu", "runs a vCPU"], ["outside", "all", "not looked at"]];
  const some = data([], { lanes, kinds: kinds.map(([id, of, label]) => ({ id, of, label })) });
  const looks = kinds.map((_, i) => ({ letter: String(i) }));
  const palette = { looks, ofVm: looks } as unknown as Palette;
  assert.deepEqual(items(some, palette).map(({ meaning, texts }) => [meaning, texts.join(", ")]), [
    ["guest", "in guest"], ["waiting", "waiting for a CPU"], ["vmm", "a thread of the VM runs"], ["other", "another thread runs"], ["unknown", "left out or not recorded"],
  ]);
});

test("marks are gone through in time", () => {
  const marks = new MarkList(SAMPLE);
  assert.deepEqual(marks.list.map(({ time }) => time), [100, 200, 4100]);
  assert.deepEqual([marks.near(0, 1), marks.near(150, 1), marks.near(150, -1), marks.near(9000, 1), marks.near(0, -1)], [0, 1, 0, 0, 2]);
  const [findings] = SAMPLE.marks;
  assert.deepEqual([120, 155, 4090, 1000].map((time) => markAt(findings, time, 5)), [0, 0, 1, undefined]);
  assert.deepEqual(eventAt(SAMPLE, 0, 110, 20), { window: 0, index: 0 });
  assert.deepEqual(eventAt(SAMPLE, -1, 110, 50), { window: 0, index: 1 });
  assert.equal(eventAt(SAMPLE, 0, 500, 20), undefined);
});

test("a text is found in lanes, causes, marks and events", () => {
  const found = find(SAMPLE, "HLT");
  assert.deepEqual(found.map((one) => [one.lane, one.from, one.mark?.index]), [[0, 0, undefined], [1, 0, undefined], [undefined, undefined, 1], [0, 100, undefined], [undefined, 150, undefined]]);
  assert.equal(find(SAMPLE, "vcpu 1").length, 1);
  assert.deepEqual([find(SAMPLE, ""), find(SAMPLE, "nowhere")], [[], []]);
});

test("a column's states are stacked by their share", () => {
  const tile = (colour: number): Uint32Array => new Uint32Array(64).fill(colour);
  const look = (colour: number) => ({ letter: "", fill: "", ink: "", tile: tile(colour) });
  const palette = { size: 8, looks: [look(1), look(2)] } as unknown as Palette;
  const STATES = { first: 0, count: 2 };
  const raster = { pixels: new Uint32Array(3 * 12), width: 3, height: 12 };
  // Half and half; all of the second; a quarter of the first and nothing known of the rest.
  drawLane(raster, Float64Array.from([0.5, 0.5, 0, 1, 0.25, 0]), STATES, 1, 9, palette);
  const column = (x: number): number[] => Array.from({ length: 12 }, (_, y) => raster.pixels[y * 3 + x] ?? -1);
  assert.deepEqual(column(0), [0, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0]);
  assert.deepEqual(column(1), [0, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0]);
  assert.deepEqual(column(2), [0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]);
  // What is not known is hatched where there is a hatch: above the known part, and in whole columns.
  const hatched = { ...palette, left: { tile: tile(7) } } as unknown as Palette;
  raster.pixels.fill(0);
  drawLane(raster, Float64Array.from([0.25, 0, 0, 0, 0, 0]), STATES, 1, 9, hatched);
  assert.deepEqual([column(0), column(1), column(2)], [[0, 7, 7, 7, 7, 7, 7, 1, 1, 0, 0, 0], ...[1, 2].map(() => [0, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0])]);
  raster.pixels.fill(0);
  drawLane(raster, Float64Array.from([0.5, 0.5, 0, 1, 0.25, 0]), STATES, 1, 9, palette);
  // Above and below the picture nothing is drawn.
  drawLane(raster, Float64Array.from([1, 0, 1, 0, 1, 0]), STATES, -4, 2, palette);
  drawLane(raster, Float64Array.from([1, 0, 1, 0, 1, 0]), STATES, 10, 40, palette);
  assert.deepEqual(column(1), [1, 1, 2, 2, 2, 2, 2, 2, 2, 0, 1, 1]);
});

test("what is drawn beyond the edges is cut off, and hatches stay in place", () => {
  const raster = { pixels: new Uint32Array(8 * 2), width: 8, height: 2 };
  box(raster, -5, 2, -1, 9, 1);
  box(raster, 7, 20, 1, 2, 1);
  assert.deepEqual([...raster.pixels], [1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1]);
  const lines = (origin: number): number[] => {
    raster.pixels.fill(0);
    hatch(raster, 0, 8, 0, 2, origin, 4, 1);
    return [...raster.pixels];
  };
  assert.deepEqual(lines(0), [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
  assert.deepEqual(lines(-1e12), lines(0));
  assert.deepEqual(lines(1), [0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
});

test("labels are cut where they do not fit", () => {
  const context = { measureText: (text: string) => ({ width: 10 * text.length }) } as unknown as CanvasRenderingContext2D;
  const letters = new Letters(context);
  assert.equal(letters.width("abc"), 30);
  assert.deepEqual([50, 49, 40, 39].map((room) => letters.fit("abcde", room)), ["abcde", "abc…", "abc…", ""]);
});

test("colours are read", () => {
  assert.deepEqual(parseColour(" #0072B2 "), [0, 114, 178]);
  assert.deepEqual(parseColour("#fff"), [255, 255, 255]);
  assert.equal(parseColour("red"), undefined);
  assert.ok(luminance([255, 255, 255]) > 0.999 && luminance([0, 0, 0]) === 0);
});

test("series of their own points have one list of places", () => {
  assert.deepEqual(align([{ label: "a", x: [0, 1], y: [1, 2] }, { label: "b", x: [0, 0.5], y: [3, 4] }]), [[0, 0.5, 1], [1, null, 2], [3, 4, null]]);
});
