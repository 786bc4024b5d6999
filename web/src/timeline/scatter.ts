// Instances of paths as points: where they began, and upwards how long they took, on a logarithmic scale. A mark that stands for
// several instances is drawn as high as the longest of them.

import { counted, duration } from "../format.js";
import type { Marks } from "./data.js";
import type { Palette } from "./palette.js";
import { firstAbove } from "./sums.js";
import type { View } from "./view.js";

/** Room above and below the points, in pixels of the style. */
const ROOM = 5;
/** How far from a point it is still meant. */
const NEAR_PX = 8;

/** The shortest and the longest time of a line of points, as logarithms. */
export interface Scale {
  low: number;
  high: number;
}

/** Whether a line of marks has durations, so that it is drawn as points. */
export function isScatter(marks: Marks | undefined): boolean {
  return marks !== undefined && marks.id.startsWith("path:") && marks.max.some((ns) => ns > 0);
}

/** The scale on which all points of a line lie. */
export function scaleOf(marks: Marks): Scale {
  let [least, most] = [Infinity, 1];
  for (const ns of marks.max) {
    if (ns > most) most = ns;
    if (ns > 0 && ns < least) least = ns;
  }
  const [low, high] = [Math.log10(Math.min(least, most)), Math.log10(most)];
  // Where all took the same, they lie in the middle.
  return high - low > 1e-9 ? { low, high } : { low: low - 0.5, high: high + 0.5 };
}

/** How high a time lies on a scale, from 0 to 1. */
export function part(scale: Scale, ns: number): number {
  const at = (Math.log10(Math.max(ns, 1)) - scale.low) / (scale.high - scale.low);
  return Math.min(1, Math.max(0, at));
}

/** Whether a mark has a slow instance: the longest of it is as long as the report calls slow. */
export function isSlow(marks: Marks, i: number): boolean {
  return (marks.max[i] as number) >= marks.slow;
}

/** Instances that began in a range. */
export interface Crowd {
  count: number;
  /** How many of them are slow; at least so many where `exact` is false. */
  slow: number;
  longest: number;
  exact: boolean;
}

/** Adds up the instances that began between two times. */
export function crowd(marks: Marks, from: number, to: number): Crowd {
  const sum: Crowd = { count: 0, slow: 0, longest: 0, exact: true };
  for (let i = firstAbove(marks.begin, from - 0.5); i < marks.count; i++) {
    if ((marks.begin[i] as number) >= to) break;
    const of = marks.of[i] as number;
    sum.count += of;
    sum.longest = Math.max(sum.longest, marks.max[i] as number);
    if (!isSlow(marks, i)) continue;
    sum.slow++;
    sum.exact &&= of === 1;
  }
  return sum;
}

/** Says how many of a crowd are slow. */
export function slowText({ slow, exact }: Crowd): string {
  return `${exact ? "" : "at least "}${slow} slow`;
}

/** Where a line of points is drawn: its top and its height, in pixels of the style. */
export interface Band {
  top: number;
  high: number;
}

/** The height of a point in a band. */
export function yOf(band: Band, scale: Scale, ns: number): number {
  return band.top + band.high - ROOM - part(scale, ns) * (band.high - 2 * ROOM);
}

/** The point that is nearest to a place, `y` pixels below the band's top, within some pixels; `unit` is the time that a pixel is. */
export function pointAt(marks: Marks, band: Band, time: number, y: number, unit: number): number | undefined {
  const scale = scaleOf(marks);
  let best: number | undefined;
  let distance = NEAR_PX;
  for (let i = 0; i < marks.count; i++) {
    const begin = marks.begin[i] as number;
    if (begin > time + NEAR_PX * unit) break;
    const end = begin + (marks.length[i] as number);
    const away = time < begin ? begin - time : time > end ? time - end : 0;
    if (away > NEAR_PX * unit) continue;
    const up = yOf({ ...band, top: 0 }, scale, marks.max[i] as number) - y;
    const far = Math.hypot(away / unit, up);
    if (far > distance) continue;
    distance = far;
    best = i;
  }
  return best;
}

/** What stands below the name of a line of points. */
export function rangeText(marks: Marks, nanoseconds: boolean): string {
  const { low, high } = scaleOf(marks);
  const text = (ns: number): string => duration(Math.round(ns), nanoseconds);
  const slow = Number.isFinite(marks.slow) ? `, slow ≥ ${text(marks.slow)}` : "";
  return `${text(10 ** low)}–${text(10 ** high)}${slow}`;
}

/** Says what lies around a point: instances that began within so many pixels of it. */
export function aroundText(marks: Marks, i: number, unit: number, nanoseconds: boolean): string | undefined {
  const begin = marks.begin[i] as number;
  const here = crowd(marks, begin - 3 * unit, begin + 3 * unit);
  if (here.count <= (marks.of[i] as number)) return undefined;
  const slow = Number.isFinite(marks.slow) ? `, ${slowText(here)}` : "";
  return `began within 3 pixels: ${counted(here.count, "instance")}${slow}, the longest ${duration(here.longest, nanoseconds)}`;
}

function diamond(context: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.closePath();
}

/** Draws one line of points: squares, hollow where one stands for several; slow ones as diamonds, over the others. */
export function draw(context: CanvasRenderingContext2D, marks: Marks, band: Band, view: View, width: number, palette: Palette, chosen: number): void {
  const scale = scaleOf(marks);
  context.fillStyle = palette.line;
  context.fillRect(0, band.top + band.high - 1, width, 1);
  if (Number.isFinite(marks.slow)) {
    // From here up instances are slow.
    const y = Math.round(yOf(band, scale, marks.slow)) + 0.5;
    context.strokeStyle = palette.slow;
    context.globalAlpha = 0.45;
    context.lineWidth = 1;
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  // Those that are alike are painted at once.
  const shapes = { single: new Path2D(), several: new Path2D() };
  const [slow, slowSeveral]: [number[], number[]] = [[], []];
  const places = new Map<number, [number, number]>();
  context.globalAlpha = 0.5;
  for (let i = 0; i < marks.count; i++) {
    const begin = marks.begin[i] as number;
    if (begin > view.to) break;
    const end = begin + (marks.length[i] as number);
    if (end < view.from) continue;
    const x = view.x(begin, width);
    const y = yOf(band, scale, marks.max[i] as number);
    const last = Math.min(width + 2, view.x(end, width));
    const isLate = isSlow(marks, i);
    if (last - Math.max(x, -2) > 4) {
      context.fillStyle = isLate ? palette.slow : palette.path;
      context.fillRect(Math.max(x, -2), y - 0.75, last - Math.max(x, -2), 1.5);
    }
    const isSeveral = (marks.of[i] as number) > 1;
    if (isLate || i === chosen) places.set(i, [x, y]);
    if (isLate) (isSeveral ? slowSeveral : slow).push(i);
    else if (isSeveral) shapes.several.rect(x - 2, y - 2, 4, 4);
    else shapes.single.rect(x - 1.5, y - 1.5, 3, 3);
  }
  context.globalAlpha = 1;
  context.fillStyle = palette.path;
  context.fill(shapes.single);
  context.strokeStyle = palette.path;
  context.lineWidth = 1;
  context.stroke(shapes.several);
  for (const [list, isFull] of [[slow, true], [slowSeveral, false]] as const) {
    context.beginPath();
    for (const i of list) diamond(context, ...(places.get(i) ?? [0, 0]), 4.5);
    context.fillStyle = isFull ? palette.slow : palette.background;
    context.fill();
    context.strokeStyle = palette.slow;
    context.lineWidth = 1.5;
    context.stroke();
  }
  const at = places.get(chosen);
  if (!at) return;
  context.strokeStyle = palette.text;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(at[0], at[1], 7.5, 0, 2 * Math.PI);
  context.stroke();
}
