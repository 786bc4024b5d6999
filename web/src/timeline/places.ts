// Places of a timeline as links, and back.

import { duration } from "../format.js";
import { format, type Place } from "../hash.js";
import type { Data } from "./data.js";
import { clock } from "./ticks.js";
import type { View } from "./view.js";

/** From when until when a place is, relative to the recording's begin. */
export function rangeOf(place: Place, data: Data): [number, number] {
  // A clock that counts ticks may be printed as it is.
  const asTicks = !data.nanoseconds && place.whole;
  const time = (at: bigint): number => Number((asTicks ? at / 1_000_000_000n : at) - data.begin);
  return [time(place.from), time(place.to)];
}

/** A link to what shows, as a fragment. */
export function hashOf(data: Data, view: View, lanes: Iterable<number>, vm: string, recording: number): string {
  const { begin, nanoseconds } = data;
  const unit = nanoseconds ? 1n : 1_000_000_000n;
  return format({
    from: (begin + BigInt(Math.floor(view.from))) * unit,
    to: (begin + BigInt(Math.ceil(view.to))) * unit,
    lanes: [...lanes].map((index) => data.lanes[index]?.id ?? ""),
    recording,
    path: "",
    vm,
    whole: !nanoseconds,
  });
}

/** From when until when something is, as the recording's clock prints it. */
export function rangeText(data: Data, from: number, to: number): string {
  const text = (time: number): string => clock(data.begin, time, data.nanoseconds);
  return `${text(from)} to ${text(to)} (${duration(to - from, data.nanoseconds)})`;
}
