// Lanes as pixels: what each column's states are, stacked by their share.

import type { Palette } from "./palette.js";
import type { States } from "./sums.js";

/** Pixels that are drawn into, four bytes each. */
export interface Raster {
  pixels: Uint32Array;
  width: number;
  height: number;
}

/** Fills rows with one colour. */
export function fill(raster: Raster, top: number, bottom: number, colour: number): void {
  const first = Math.max(0, top) * raster.width;
  const last = Math.min(raster.height, bottom) * raster.width;
  if (last > first) raster.pixels.fill(colour, first, last);
}

/** The part of a column from which one state is all of it. */
const WHOLE = 0.9999;

/**
 * Draws one lane. `parts[column * states.count + state - states.first]` is the part of a column's time that each state has; what
 * is left of it was not observed, and is hatched.
 */
export function lane(raster: Raster, parts: Float64Array, states: States, top: number, bottom: number, palette: Palette): void {
  const { pixels, width } = raster;
  const height = bottom - top;
  if (height <= 0 || bottom <= 0 || top >= raster.height) return;
  const { first, count } = states;
  const { size, looks } = palette;
  const mask = size - 1;
  const [least, most] = [Math.max(0, top), Math.min(raster.height, bottom)];
  const left = palette.left?.tile;
  for (let x = 0; x < width; x++) {
    const base = x * count;
    // From the bottom up, each boundary rounded, so that what is drawn adds up to the share that is known.
    let sum = 0;
    let low = bottom;
    for (let state = 0; state < count; state++) {
      const part = parts[base + state] as number;
      if (part <= 0) continue;
      if (part > WHOLE) {
        // A long stretch: its columns are drawn together.
        let past = x + 1;
        while (past < width && (parts[past * count + state] as number) > WHOLE) past++;
        tiled(raster, x, past, top, bottom, looks[first + state]?.tile, size);
        x = past - 1;
        sum = 1;
        break;
      }
      sum += part;
      const high = sum > WHOLE ? top : bottom - Math.round(sum * height);
      if (high >= low) continue;
      const tile = looks[first + state]?.tile;
      const stop = low < most ? low : most;
      low = high;
      if (!tile) continue;
      // As `tiled` does, for one column: this is what most of the time goes to when much is shown.
      const column = x & mask;
      const from = high > least ? high : least;
      for (let y = from, at = from * width + x; y < stop; y++, at += width) pixels[at] = tile[(y & mask) * size + column] as number;
    }
    if (sum > WHOLE || low <= top) continue;
    // Nothing is known of the rest: of columns without anything, all at once.
    let past = x + 1;
    if (sum === 0) while (past < width && isEmpty(parts, past * count, count)) past++;
    tiled(raster, x, past, top, low, left, size);
    x = past - 1;
  }
}

function isEmpty(parts: Float64Array, from: number, count: number): boolean {
  for (let at = from; at < from + count; at++) if ((parts[at] as number) > 0) return false;
  return true;
}

/** Fills a box with a tile. */
export function tiled(raster: Raster, left: number, right: number, top: number, bottom: number, tile: Uint32Array | undefined, size: number): void {
  const { pixels, width } = raster;
  if (!tile) return;
  const mask = size - 1;
  const stop = Math.min(raster.height, bottom);
  for (let y = Math.max(0, top); y < stop; y++) {
    const line = (y & mask) * size;
    const row = y * width;
    for (let x = left; x < right; x++) pixels[row + x] = tile[line | (x & mask)] as number;
  }
}

/** Fills a box with one colour. */
export function box(raster: Raster, left: number, right: number, top: number, bottom: number, colour: number): void {
  const { pixels, width } = raster;
  const [x0, x1] = [Math.max(0, left), Math.min(width, right)];
  if (x1 <= x0) return;
  const stop = Math.min(raster.height, bottom);
  for (let y = Math.max(0, top); y < stop; y++) pixels.fill(colour, y * width + x0, y * width + x1);
}

/** Hatches a box: lines that rise, `step` apart, and stay where they are in the recording when `origin` moves with it. */
export function hatch(raster: Raster, left: number, right: number, top: number, bottom: number, origin: number, step: number, colour: number): void {
  const { pixels, width } = raster;
  const [x0, x1] = [Math.max(0, left), Math.min(width, right)];
  const thick = Math.max(1, Math.round(step / 5));
  const stop = Math.min(raster.height, bottom);
  for (let y = Math.max(0, top); y < stop; y++) {
    // The first line at or after the left edge; a double may be beyond what `%` of whole numbers takes.
    const phase = (((x0 - origin + (y - top)) % step) + step) % step;
    for (let x = x0 - Math.round(phase); x < x1; x += step) {
      const last = Math.min(x + thick, x1);
      for (let at = Math.max(x, x0); at < last; at++) pixels[y * width + at] = colour;
    }
  }
}
