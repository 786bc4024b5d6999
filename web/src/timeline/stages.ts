// The stages of a chosen instance: a table of its steps, and its way over the lanes, as arrows where it goes from one thread or CPU
// to another.

import { make } from "../dom.js";
import { duration } from "../format.js";
import { equip } from "../tables.js";
import type { Data, Instance, Marks } from "./data.js";
import type { Palette } from "./palette.js";
import { type Row, rowOf } from "./rows.js";
import { clock } from "./ticks.js";
import type { View } from "./view.js";
import { laneOf, laneOfCpu, tidOf } from "./wakes.js";

/** The instance that a mark stands for; of several, the longest of them, where the page has its steps. */
export function instanceOf(marks: Marks | undefined, index: number): Instance | undefined {
  if (!marks) return undefined;
  const [begin, end] = [marks.begin[index] as number, (marks.begin[index] as number) + (marks.length[index] as number)];
  const longest = marks.max[index] as number;
  return marks.instances.find((one) => one.begin >= begin && one.end <= end && one.end - one.begin === longest);
}

/** The mark of an instance that lasts from one time to another: its line and place. `label`: of that path. */
export function markOf(data: Data, from: number, to: number, label: string): { line: number; index: number } | undefined {
  for (const [line, marks] of data.marks.entries()) {
    if (!marks.id.startsWith("path:") || marks.label !== label) continue;
    // A point may stand for several: then it is the one that has this one.
    const index = marks.begin.findIndex((begin, at) => begin <= from && begin + (marks.length[at] as number) >= to && (marks.max[at] as number) >= to - from);
    if (index >= 0) return { line, index };
  }
  return undefined;
}

/** The lanes that a mark's instance goes over. */
export function lanesOf(data: Data, { line, index }: { line: number; index: number }): number[] {
  const steps = instanceOf(data.marks[line], index)?.steps ?? [];
  const lanes = steps.flatMap(({ from, to }) => [from, to].map((who) => laneOf(data, tidOf(who) ?? -1)));
  return [...new Set(lanes)].filter((lane) => lane >= 0);
}

/** A table of an instance's steps. `command` prints them, if it is known. */
export function stageTable(data: Data, marks: Marks, one: Instance, command: string): HTMLElement {
  const whole = duration(one.end - one.begin, data.nanoseconds);
  const table = make("table", { class: "data", "data-name": "timeline-stages" });
  table.append(make("caption", {}, `Stages of ${marks.label}, instance ${one.number}: ${whole} from ${clock(data.begin, one.begin, data.nanoseconds)}`));
  const heads = [["", "number", "step"], ["step", "text", "name"], ["who", "text", "who"], ["CPU", "number", "cpu"], ["since the one before", "ns", "stage_ns"], ["since the first", "ns", "offset_ns"]] as const;
  table.append(make("thead", {}, make("tr", {}, ...heads.map(([head, unit, column]) => make("th", { scope: "col", "data-unit": unit, "data-column": column }, head)))));
  const time = (ns: number): HTMLElement => make("td", { "data-v": String(ns) }, duration(ns, data.nanoseconds));
  const rows = one.steps.map(({ time: at, cpu, from, to, name }, index) => {
    const before = one.steps[index - 1]?.time ?? at;
    const who = from === to ? to : `${from} → ${to}`;
    const place = make("td", { "data-v": cpu < 0 ? "" : String(cpu) }, cpu < 0 ? "" : String(cpu));
    return make("tr", {}, make("td", { "data-v": String(index + 1) }, String(index + 1)), make("th", { scope: "row" }, name), make("td", {}, who), place, time(at - before), time(at - one.begin));
  });
  table.append(make("tbody", {}, ...rows));
  if (command) table.setAttribute("data-command", command);
  const box = make("div", { class: "tl-stages" }, table);
  equip(table);
  return box;
}

/** A step on the lanes, in pixels of the style: from where it comes, where it is, and where the one before was. */
export interface Hop {
  x: number;
  from: number;
  to: number;
  before: { x: number; y: number } | undefined;
}

/** The way of an instance over the rows that show. Who has no lane is where its CPU is. */
export function hops(data: Data, one: Instance | undefined, rows: readonly Row[], groups: readonly string[], view: View, width: number): Hop[] {
  const middle = (who: string, cpu: number): number | undefined => {
    const row = rowOf(rows, groups, laneOf(data, tidOf(who) ?? -1)) ?? rowOf(rows, groups, laneOfCpu(data, cpu));
    return row && row.top + row.height / 2;
  };
  const out: Hop[] = [];
  for (const { time, cpu, from, to } of one?.steps ?? []) {
    const [own, target] = [middle(from, cpu), middle(to, cpu)];
    if (own === undefined || target === undefined) continue;
    const last = out[out.length - 1];
    out.push({ x: view.x(time, width), from: own, to: target, before: last && { x: last.x, y: last.to } });
  }
  return out;
}

/** Numbers stand on steps that are so far apart, in pixels. */
const APART = 13;

/** Draws an instance's way: its steps by their numbers, and arrows where it changes lanes. */
export function draw(context: CanvasRenderingContext2D, list: readonly Hop[], scroll: number, palette: Palette): void {
  const head = (x: number, from: number, to: number): void => {
    const up = to < from ? 1 : -1;
    context.beginPath();
    context.moveTo(x, to);
    context.lineTo(x - 4, to + up * 8);
    context.lineTo(x + 4, to + up * 8);
    context.closePath();
    context.fill();
  };
  // A light line below each dark one, so that it is seen on every state.
  for (const [colour, width] of [[palette.background, 5], [palette.select, 2]] as const) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    for (const { x, from, to, before } of list) {
      context.beginPath();
      if (before) {
        context.moveTo(before.x, before.y - scroll);
        context.lineTo(x, from - scroll);
      }
      context.moveTo(x, from - scroll);
      context.lineTo(x, to - scroll);
      context.stroke();
      if (from !== to) head(x, from - scroll, to - scroll);
    }
  }
  context.textAlign = "center";
  let last = -Infinity;
  list.forEach(({ x, to }, at) => {
    const hasRoom = x - last >= APART;
    context.fillStyle = palette.select;
    context.beginPath();
    context.arc(x, to - scroll, hasRoom ? 7 : 3, 0, 2 * Math.PI);
    context.fill();
    if (!hasRoom) return;
    last = x;
    context.fillStyle = palette.background;
    context.fillText(String(at + 1), x, to - scroll + 0.5);
  });
  context.textAlign = "start";
}
