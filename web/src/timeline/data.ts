// The data of a timeline: base64 of raw deflate of JSON, in which times are differences, to arrays of numbers that are
// searched by halves and drawn without an object a cell.

/** A state of a lane. */
export interface Kind {
  id: string;
  label: string;
  of: string;
}

/** Stretches of a lane, in order, none over another. Times are relative to the recording's begin. */
export interface Cells {
  count: number;
  begin: Float64Array;
  end: Float64Array;
  /** The state of a single stretch; -1 where a cell is the sum of several. */
  kind: Int16Array;
  /** Of a single stretch: names of its cause and of what it waits behind, and its CPU. Of a sum: where its states begin in `sumKind`, how many they are, and how many stretches it stands for. */
  a: Int32Array;
  b: Int32Array;
  c: Int32Array;
  sumKind: Uint8Array;
  sumNs: Float64Array;
}

/** A line of states. */
export interface Lane {
  id: string;
  group: string;
  label: string;
  detail: string;
  vm: string;
  cells: Cells;
}

/** A step of an instance: when, on which CPU (-1 where that is none of the host's), from whom and to whom it goes, and what it is. */
export interface Step {
  time: number;
  cpu: number;
  from: string;
  to: string;
  name: string;
}

/** An instance of a path whose steps the page has. */
export interface Instance {
  number: number;
  begin: number;
  end: number;
  steps: Step[];
}

/** A line of markers. */
export interface Marks {
  id: string;
  label: string;
  count: number;
  begin: Float64Array;
  length: Float64Array;
  /** How many a marker stands for, and the longest of them. */
  of: Float64Array;
  max: Float64Array;
  what: Int32Array;
  /** From which time on they are slow; infinite where none is. */
  slow: number;
  instances: Instance[];
}

/** A piece of the recording whose single events were kept. */
export interface Window {
  begin: number;
  end: number;
  why: string;
  count: number;
  time: Float64Array;
  cpu: Int32Array;
  tid: Int32Array;
  lane: Int32Array;
  name: Int32Array;
  text: Int32Array;
}

/** All of it. */
export interface Data {
  begin: bigint;
  length: number;
  nanoseconds: boolean;
  names: string[];
  kinds: Kind[];
  lanes: Lane[];
  marks: Marks[];
  windows: Window[];
  /** Threads that have no lane. */
  withoutLane: number;
  notes: string[];
}

/** The JSON, before its lists of numbers are taken apart. */
interface Written {
  version: number;
  begin_ns: string;
  length_ns: number;
  nanoseconds: boolean;
  names: string[];
  kinds: Kind[];
  lanes: { id: string; group: string; label: string; detail?: string; vm?: string; cells: number[] }[];
  marks: { id: string; label: string; slow_ns?: number; step_names?: string[]; instances?: { number: number; begin: number; steps: number[] }[]; marks: number[] }[];
  windows: { begin: number; end: number; why: string; events: number[] }[];
  without_lane?: number;
  notes: string[];
}

/** Bytes of base64. */
export function bytes(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64.trim());
  const out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) out[at] = text.charCodeAt(at);
  return out;
}

/** Unpacks raw deflate (RFC 1951) to text. */
export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(stream).text();
}

function cellsOf(written: readonly number[]): Cells {
  // First how much there is, then the arrays of that size.
  let count = 0;
  let parts = 0;
  for (let at = 0; at + 2 < written.length; count++) {
    const kind = written[at + 2] as number;
    at += kind >= 0 ? 6 : 4 - 2 * kind;
    if (kind < 0) parts -= kind;
  }
  const cells: Cells = {
    count,
    begin: new Float64Array(count),
    end: new Float64Array(count),
    kind: new Int16Array(count),
    a: new Int32Array(count),
    b: new Int32Array(count),
    c: new Int32Array(count),
    sumKind: new Uint8Array(parts),
    sumNs: new Float64Array(parts),
  };
  let time = 0;
  let part = 0;
  for (let at = 0, i = 0; i < count; i++) {
    time += written[at] as number;
    cells.begin[i] = time;
    time += written[at + 1] as number;
    cells.end[i] = time;
    const kind = written[at + 2] as number;
    if (kind >= 0) {
      cells.kind[i] = kind;
      cells.a[i] = written[at + 3] as number;
      cells.b[i] = written[at + 4] as number;
      cells.c[i] = written[at + 5] as number;
      at += 6;
    } else {
      cells.kind[i] = -1;
      cells.a[i] = part;
      cells.b[i] = -kind;
      cells.c[i] = written[at + 3] as number;
      for (let one = 0; one < -kind; one++, part++) {
        cells.sumKind[part] = written[at + 4 + 2 * one] as number;
        cells.sumNs[part] = written[at + 5 + 2 * one] as number;
      }
      at += 4 - 2 * kind;
    }
  }
  return cells;
}

function instancesOf({ step_names: names, instances }: Written["marks"][number]): Instance[] {
  const name = (at: number | undefined): string => names?.[at ?? -1] ?? "";
  return (instances ?? []).map(({ number, begin, steps: written }) => {
    const steps: Step[] = [];
    let time = begin;
    for (let at = 0; at + 4 < written.length; at += 5) {
      const [gap = 0, cpu = -1, from, to, step] = written.slice(at, at + 5);
      time += gap;
      steps.push({ time, cpu, from: name(from), to: name(to), name: name(step) });
    }
    return { number, begin, end: time, steps };
  });
}

function marksOf(line: Written["marks"][number]): Marks {
  const { id, label, slow_ns, marks: written } = line;
  const count = Math.floor(written.length / 5);
  const column = (at: number): Float64Array => Float64Array.from({ length: count }, (_, i) => written[5 * i + at] as number);
  const begin = column(0);
  for (let i = 1; i < count; i++) begin[i] = (begin[i] as number) + (begin[i - 1] as number);
  return { id, label, count, begin, length: column(1), of: column(2), max: column(3), what: Int32Array.from(column(4)), slow: slow_ns ?? Infinity, instances: instancesOf(line) };
}

/** Those of a line of marks that are asked for. */
export function pick(marks: Marks, isAsked: (i: number) => boolean): Marks {
  const kept = [...marks.begin.keys()].filter(isAsked);
  const floats = (list: Float64Array): Float64Array => Float64Array.from(kept, (i) => list[i] as number);
  const what = Int32Array.from(kept, (i) => marks.what[i] as number);
  return { ...marks, count: kept.length, begin: floats(marks.begin), length: floats(marks.length), of: floats(marks.of), max: floats(marks.max), what };
}

function windowOf(window: Written["windows"][number]): Window {
  const { begin, end, why, events } = window;
  const count = Math.floor(events.length / 6);
  const column = (at: number): Int32Array => Int32Array.from({ length: count }, (_, i) => events[6 * i + at] as number);
  const time = new Float64Array(count);
  for (let i = 0, now = begin; i < count; i++) {
    now += events[6 * i] as number;
    time[i] = now;
  }
  return { begin, end, why, count, time, cpu: column(1), tid: column(2), lane: column(3), name: column(4), text: column(5) };
}

/** Reads the JSON of a timeline. */
export function read(json: string): Data {
  const written = JSON.parse(json) as Written;
  if (written.version !== 1) throw new Error(`the timeline's data is of version ${String(written.version)}`);
  return {
    begin: BigInt(written.begin_ns),
    length: Math.max(1, written.length_ns),
    nanoseconds: written.nanoseconds,
    names: written.names,
    kinds: written.kinds,
    lanes: written.lanes.map((lane) => ({
      id: lane.id,
      group: lane.group,
      label: lane.label,
      detail: lane.detail ?? "",
      vm: lane.vm ?? "",
      cells: cellsOf(lane.cells),
    })),
    marks: written.marks.map(marksOf),
    windows: written.windows.map(windowOf),
    withoutLane: written.without_lane ?? 0,
    notes: written.notes,
  };
}

/** Decodes what stands in a page. */
export async function decode(base64: string): Promise<Data> {
  return read(await inflate(bytes(base64)));
}
