// Who woke whom, and when who was woken ran: from the scheduler's single events, where the page has them.

import { duration } from "../format.js";
import type { Data, Lane } from "./data.js";
import { cellAt } from "./sums.js";
import { name } from "./tell.js";
import { clock } from "./ticks.js";

/** A wake-up. Threads are named by their ids; the idle task, in which interrupts wake, has 0. */
export interface Wake {
  time: number;
  waker: number;
  /** Where the waker was; -1 where that is not known. */
  cpu: number;
  wakee: number;
  /** When it ran and where; nothing where that is not in the page. */
  ran: number | undefined;
  ranOn: number;
}

/** Wake-ups that lead to one another are followed back over so many steps. */
const MOST_STEPS = 8;
/** As the kernel prints them (include/trace/events/sched.h). A thread may be called like a field, so the last one counts. */
const WAKING = /^comm=.* pid=(\d+) prio=-?\d+(?: success=\d)?(?: target_cpu=\d+)?$/s;
const SWITCH = / next_pid=(\d+) next_prio=-?\d+$/;
/** States in which a thread does not run. */
const OFF = new Set(["runnable", "sleeping", "blocked", "halted", "kernel_blocked", "user_blocked", "unknown", "outside"]);

/** The thread that a name of the page ends in: `CPU 0/KVM:1700`. */
export function tidOf(text: string): number | undefined {
  const found = /:(\d+)$/.exec(text);
  return found ? Number(found[1]) : undefined;
}

/** The lane of a thread. */
export function laneOf(data: Data, tid: number): number {
  return tid > 0 ? data.lanes.findIndex((lane) => lane.id === `tid-${tid}`) : -1;
}

/** The lane of a CPU. */
export function laneOfCpu(data: Data, cpu: number): number {
  return data.lanes.findIndex((lane) => lane.id === `cpu-${cpu}`);
}

/** When a lane that does not run at a time runs again, as its stretches say. */
function runsAgain(data: Data, lane: Lane | undefined, time: number): number | undefined {
  if (!lane) return undefined;
  const { cells } = lane;
  for (let i = cellAt(cells, time); i >= 0 && i < cells.count; i++) {
    const kind = cells.kind[i] as number;
    if (kind < 0) return undefined;
    if (!OFF.has(data.kinds[kind]?.id ?? "")) return Math.max(time, cells.begin[i] as number);
  }
  return undefined;
}

/** All wake-ups that the page has. */
export class Wakes {
  private readonly byWakee = new Map<number, Wake[]>();
  count = 0;

  constructor(private readonly data: Data) {
    const ofName = (end: RegExp): Set<number> => new Set(data.names.flatMap((one, index) => (end.test(one) ? [index] : [])));
    const [wakes, switches] = [ofName(/(^|:)sched_(waking|wakeup|wakeup_new)$/), ofName(/(^|:)sched_switch$/)];
    // Who was woken and has not run yet. One wake-up has two events, of which the first is the waker's.
    const open = new Map<number, Wake>();
    let until = -1;
    for (const window of data.windows) {
      if (window.begin > until) open.clear();
      until = Math.max(until, window.end);
      for (let i = 0; i < window.count; i++) {
        const kind = window.name[i] as number;
        const isWake = wakes.has(kind);
        if (!isWake && !switches.has(kind)) continue;
        const found = (isWake ? WAKING : SWITCH).exec(name(data, window.text[i] as number));
        if (!found) continue;
        const [tid, time, cpu] = [Number(found[1]), window.time[i] as number, window.cpu[i] as number];
        const known = open.get(tid);
        if (!isWake) {
          if (known) [known.ran, known.ranOn] = [time, cpu];
          open.delete(tid);
        } else if (!known) {
          const wake: Wake = { time, waker: window.tid[i] as number, cpu, wakee: tid, ran: undefined, ranOn: -1 };
          open.set(tid, wake);
          const list = this.byWakee.get(tid);
          if (list) list.push(wake);
          else this.byWakee.set(tid, [wake]);
          this.count++;
        }
      }
    }
    for (const list of this.byWakee.values()) {
      list.sort((a, b) => a.time - b.time);
      for (const wake of list) wake.ran ??= runsAgain(data, data.lanes[laneOf(data, wake.wakee)], wake.time);
    }
  }

  /** The last wake-up of a thread at or before a time. */
  before(tid: number, time: number): Wake | undefined {
    return (this.byWakee.get(tid) ?? []).filter((wake) => wake.time <= time).pop();
  }

  /** The first wake-up of a thread between two times. */
  between(tid: number, from: number, to: number): Wake | undefined {
    return (this.byWakee.get(tid) ?? []).find((wake) => wake.time >= from && wake.time <= to);
  }

  /** The wake-ups that led to a thread's last one before a time, back to another time, the last one first. */
  chain(tid: number, from: number, to: number): Wake[] {
    const out: Wake[] = [];
    let [who, limit] = [tid, to];
    while (out.length < MOST_STEPS) {
      const wake = this.before(who, limit);
      if (!wake || wake.time < from || out.includes(wake)) break;
      out.push(wake);
      if (wake.waker <= 0) break;
      // Its waker ran then: what led to that was before.
      [who, limit] = [wake.waker, wake.time];
    }
    return out;
  }

  /** The wake-ups of an instance of a path: those that led to the last one of its thread. */
  ofMark(line: number, index: number): Wake[] {
    const marks = this.data.marks[line];
    const tid = marks && tidOf(name(this.data, marks.what[index] as number));
    if (!marks || tid === undefined) return [];
    const begin = marks.begin[index] as number;
    return this.chain(tid, begin, begin + (marks.length[index] as number));
  }

  /** The wake-up that a moment of a lane is about: of who sleeps the one that ends it, of others the one that they run by, with what led to it. */
  ofMoment(lane: Lane, time: number): Wake[] {
    const tid = /^tid-(\d+)$/.exec(lane.id);
    if (!tid) return [];
    const { cells } = lane;
    const at = cellAt(cells, time);
    const kind = at < 0 ? undefined : this.data.kinds[cells.kind[at] as number];
    const isAsleep = kind !== undefined && kind.id !== "runnable" && OFF.has(kind.id);
    const [who, near] = [Number(tid[1]), this.data.length / 20];
    const end = isAsleep && at >= 0 ? (cells.end[at] as number) : time;
    const wake = isAsleep ? this.between(who, time, end + near) : this.before(who, time);
    if (!wake || Math.abs(wake.time - time) > near + (end - time)) return [];
    return this.chain(who, wake.time - near, wake.time);
  }
}

function whoText(data: Data, tid: number, cpu: number): string {
  const lane = data.lanes[laneOf(data, tid)];
  if (tid === 0) return cpu >= 0 ? `an interrupt on idle CPU ${cpu}` : "an interrupt on an idle CPU";
  return lane ? `${lane.label} (thread ${tid})` : `thread ${tid}`;
}

/** Says who woke whom, one wake-up a line. */
export function wakeTexts(data: Data, wakes: readonly Wake[]): string[] {
  return wakes.map((wake) => {
    const at = clock(data.begin, wake.time, data.nanoseconds);
    const ran = wake.ran === undefined ? "when it ran then is not in this file" : `it ran ${duration(wake.ran - wake.time, data.nanoseconds)} later`;
    const on = wake.ran !== undefined && wake.ranOn >= 0 ? ` on CPU ${wake.ranOn}` : "";
    return `${whoText(data, wake.wakee, -1)} was woken at ${at} by ${whoText(data, wake.waker, wake.cpu)}; ${ran}${on}`;
  });
}
