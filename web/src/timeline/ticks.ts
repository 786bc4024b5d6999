// The ruler: round times of the recording's clock.

import { tickStep } from "d3-array";
import { seconds } from "../format.js";

/** A tick: its time relative to the recording's begin, and what the clock prints. */
export interface Tick {
  time: number;
  label: string;
}

/** A time of the recording, as the recording's clock prints it. */
export function clock(begin: bigint, time: number, nanoseconds: boolean, decimals = 9): string {
  const at = begin + BigInt(Math.round(time));
  return nanoseconds ? seconds(at, decimals) : String(at);
}

/** Decimals that tell times apart which are a step apart. */
export function decimalsOf(step: number): number {
  return Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(Math.max(1, step)) + 1e-9)));
}

/** About so many ticks between two times. */
export function ticks(begin: bigint, from: number, to: number, about: number, nanoseconds: boolean): Tick[] {
  const step = Math.max(1, Math.round(tickStep(from, to, Math.max(1, about))));
  const wide = BigInt(step);
  const first = begin + BigInt(Math.ceil(from));
  // The next round time of the clock itself, which may be beyond what a double tells apart.
  let at = ((first + wide - 1n) / wide) * wide;
  const out: Tick[] = [];
  const decimals = decimalsOf(step);
  for (; out.length < 4 * about + 4; at += wide) {
    const time = Number(at - begin);
    if (time > to) break;
    out.push({ time, label: nanoseconds ? seconds(at, decimals) : String(at) });
  }
  return out;
}
