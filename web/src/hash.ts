// Links to places of a timeline: `#t=443.99,444.10&lane=tid-1700,cpu-3&path=irqfd&vm=web&rec=1`.

import { parseSeconds, seconds } from "./format.js";

/** A place: times of the recording's clock in nanoseconds, the lanes that are marked, and which recording. */
export interface Place {
  from: bigint;
  to: bigint;
  lanes: string[];
  recording: number;
  /** The path of which the times are an instance's; "" where they are none's. */
  path: string;
  /** The VM that is shown alone; "" where all are. */
  vm: string;
  /** Whether the times are whole numbers, which a clock that counts ticks prints as they are. */
  whole: boolean;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Reads a link's fragment; nothing where it names no place of a timeline. */
export function parse(hash: string): Place | undefined {
  const members = new Map<string, string>();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at > 0) members.set(part.slice(0, at), part.slice(at + 1));
  }
  const [first, second, ...more] = decoded(members.get("t") ?? "").split(",");
  if (first === undefined || more.length > 0) return undefined;
  const from = parseSeconds(first);
  const to = second === undefined ? from : parseSeconds(second);
  if (from === undefined || to === undefined) return undefined;
  const names = (members.get("lane") ?? "").split(",").map(decoded);
  const recording = Number.parseInt(members.get("rec") ?? "0", 10);
  return {
    from: from <= to ? from : to,
    to: from <= to ? to : from,
    lanes: names.filter((name) => name !== ""),
    recording: Number.isSafeInteger(recording) && recording >= 0 ? recording : 0,
    path: decoded(members.get("path") ?? ""),
    vm: decoded(members.get("vm") ?? ""),
    whole: !first.includes(".") && !(second ?? "").includes("."),
  };
}

/** Writes a link's fragment, with as many decimals as tell its ends apart. */
export function format(place: Place): string {
  let decimals = place.whole ? 0 : 9;
  for (const fewer of place.whole ? [] : [3, 6]) {
    // Three digits below the length of the range: a link opens what was seen to a thousandth of it.
    if (place.to - place.from >= 10n ** BigInt(9 - fewer + 3)) {
      decimals = fewer;
      break;
    }
  }
  let text = `#t=${seconds(place.from, decimals)},${seconds(place.to, decimals)}`;
  if (place.lanes.length > 0) text += `&lane=${place.lanes.map(encodeURIComponent).join(",")}`;
  if (place.path !== "") text += `&path=${encodeURIComponent(place.path)}`;
  if (place.vm !== "") text += `&vm=${encodeURIComponent(place.vm)}`;
  if (place.recording > 0) text += `&rec=${place.recording}`;
  return text;
}
