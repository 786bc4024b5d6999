// Who ran on the CPU that somebody waited for.

import { make } from "../dom.js";
import { duration, share } from "../format.js";
import { equip } from "../tables.js";
import type { Data, Lane } from "./data.js";
import { cellAt, firstAbove } from "./sums.js";
import { name } from "./tell.js";
import { clock } from "./ticks.js";
import { laneOfCpu } from "./wakes.js";

/** Who ran there, and how long. */
export interface Runner {
  who: string;
  ns: number;
}

/** A stretch in which a thread or a vCPU waited for a CPU, and what that CPU did meanwhile. */
export interface Meanwhile {
  lane: Lane;
  from: number;
  to: number;
  cpu: number;
  /** The lane of that CPU; -1 where the page has none. */
  cpuLane: number;
  /** The greatest first. */
  runners: Runner[];
  /** Time of which the page does not know what the CPU did. */
  unknown: number;
  /** False where a sum lies partly within: its states are then taken to be spread evenly. */
  exact: boolean;
}

/** What a CPU did while a lane waited for it at a time; nothing where the lane did not wait, or its stretches were summed. */
export function meanwhile(data: Data, lane: Lane | undefined, time: number): Meanwhile | undefined {
  if (!lane) return undefined;
  const at = cellAt(lane.cells, time);
  if (at < 0 || data.kinds[lane.cells.kind[at] as number]?.id !== "runnable") return undefined;
  const [from, to, cpu] = [lane.cells.begin[at] as number, lane.cells.end[at] as number, lane.cells.c[at] as number];
  const cpuLane = cpu < 0 ? -1 : laneOfCpu(data, cpu);
  const found: Meanwhile = { lane, from, to, cpu, cpuLane, runners: [], unknown: to - from, exact: true };
  const cells = data.lanes[cpuLane]?.cells;
  if (!cells) return found;
  const byName = new Map<string, number>();
  const add = (who: string, ns: number): void => {
    byName.set(who, (byName.get(who) ?? 0) + ns);
    found.unknown -= ns;
  };
  const label = (kind: number): string => data.kinds[kind]?.label ?? "?";
  for (let i = firstAbove(cells.end, from); i < cells.count; i++) {
    const [begin, end] = [cells.begin[i] as number, cells.end[i] as number];
    if (begin >= to) break;
    const inside = Math.min(end, to) - Math.max(begin, from);
    const kind = cells.kind[i] as number;
    if (kind >= 0) {
      add(name(data, cells.a[i] as number) || label(kind), inside);
      continue;
    }
    const part = inside / (end - begin);
    if (part < 1) found.exact = false;
    const first = cells.a[i] as number;
    for (let one = first; one < first + (cells.b[i] as number); one++) {
      add(`${label(cells.sumKind[one] as number)} (several, kept as a sum)`, (cells.sumNs[one] as number) * part);
    }
  }
  found.runners = [...byName].map(([who, ns]) => ({ who, ns })).sort((a, b) => b.ns - a.ns);
  if (found.unknown < 0.5) found.unknown = 0;
  return found;
}

/** Says it in a sentence. */
export function headText(data: Data, found: Meanwhile): string {
  const took = duration(found.to - found.from, data.nanoseconds);
  const at = clock(data.begin, found.from, data.nanoseconds);
  if (found.cpu < 0) return `${found.lane.label} waited ${took} for a CPU, from ${at}. Which CPU is not recorded.`;
  return `Who ran on CPU ${found.cpu} while ${found.lane.label} waited ${took} for it, from ${at}`;
}

/** What stands below the line of text: a table of who ran. `command`: what prints the CPU's switches. */
export function panel(data: Data, found: Meanwhile, command: string): HTMLElement {
  const text = headText(data, found);
  const box = make("div", { class: "tl-meanwhile" });
  if (found.cpuLane < 0) {
    box.append(make("p", {}, found.cpu < 0 ? text : `${text}: this file has no lane of CPU ${found.cpu}.`));
    return box;
  }
  const table = make("table", { class: "data", "data-name": "timeline-meanwhile" }, make("caption", {}, found.exact ? text : `${text}; states of sums are taken to be spread evenly`));
  const heads = [["who", "text", "who"], ["time", "ns", "ns"], ["of the wait", "share", "share"]] as const;
  table.append(make("thead", {}, make("tr", {}, ...heads.map(([head, unit, column]) => make("th", { scope: "col", "data-unit": unit, "data-column": column }, head)))));
  const body = make("tbody");
  const whole = found.to - found.from;
  const rest = found.unknown > 0 ? [{ who: "not recorded", ns: found.unknown }] : [];
  for (const { who, ns } of [...found.runners, ...rest]) {
    const part = whole > 0 ? ns / whole : 0;
    body.append(make("tr", {}, make("th", { scope: "row" }, who), make("td", { "data-v": String(Math.round(ns)) }, duration(ns, data.nanoseconds)), make("td", { "data-v": String(part) }, share(ns, whole))));
  }
  table.append(body);
  if (command) table.setAttribute("data-command", command);
  box.append(table);
  equip(table);
  return box;
}
