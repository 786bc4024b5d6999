// Lanes as pixels: what each column's states are, stacked by their share.

import type { Palette } from "./palette.js";

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

/** Draws one lane. `parts[column * kinds + state]` is the part of a column's time that each state has; what is left of it was not observed, and stays as it is. */
export function lane(raster: Raster, parts: Float64Array, kinds: number, top: number, bottom: number, palette: Palette): void {
  const { pixels, width } = raster;
  const height = bottom - top;
  const clipTop = Math.max(0, top);
  const clipBottom = Math.min(raster.height, bottom);
  if (clipBottom <= clipTop || height <= 0) return;
  const { size, looks } = palette;
  const mask = size - 1;
  for (let x = 0; x < width; x++) {
    // From the bottom up, each boundary rounded, so that what is drawn adds up to the share that is known.
    let sum = 0;
    let low = bottom;
    const base = x * kinds;
    for (let state = 0; state < kinds; state++) {
      const part = parts[base + state] as number;
      if (part <= 0) continue;
      sum += part;
      const high = sum > 0.9999 ? top : bottom - Math.round(sum * height);
      const look = looks[state];
      if (high < low && look) {
        const tile = look.tile;
        const column = x & mask;
        const stop = Math.min(low, clipBottom);
        for (let y = Math.max(high, clipTop); y < stop; y++) {
          pixels[y * width + x] = tile[((y & mask) * size) | column] as number;
        }
      }
      low = Math.min(low, high);
    }
  }
}
