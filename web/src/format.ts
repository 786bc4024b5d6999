// Durations, time stamps and shares, written as trapline writes them everywhere (crates/words).

/** A duration with four digits and its unit: `870ns`, `76.06us`, `1234s`. */
export function human(ns: number): string {
  if (ns < 999.5) return `${Math.round(ns)}ns`;
  // What would round up to 1000 belongs to the next unit.
  const [value, unit] = ns < 999.95e3 ? [ns / 1e3, "us"] : ns < 999.95e6 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  const digits = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
  return value.toFixed(digits) + unit;
}

/** A duration, or a number of ticks of unknown rate as it is. */
export function duration(value: number, nanoseconds: boolean): string {
  return nanoseconds ? human(value) : `${Math.round(value)} ticks`;
}

/** A round duration without digits that say nothing: `20ms`, `2.5us`. */
export function short(ns: number): string {
  const [value, unit] = ns >= 1e9 ? [ns / 1e9, "s"] : ns >= 1e6 ? [ns / 1e6, "ms"] : ns >= 1e3 ? [ns / 1e3, "us"] : [ns, "ns"];
  return `${Number(value.toPrecision(4))}${unit}`;
}

/** A time stamp in seconds with so many decimals, nine as `perf script --ns` prints it. Digits that are left out are cut off, as perf does. */
export function seconds(ns: bigint, decimals = 9): string {
  const sign = ns < 0n ? "-" : "";
  const size = ns < 0n ? -ns : ns;
  const whole = `${sign}${size / 1_000_000_000n}`;
  if (decimals <= 0) return whole;
  return `${whole}.${String(size % 1_000_000_000n).padStart(9, "0").slice(0, decimals)}`;
}

/** Reads a time stamp in seconds. */
export function parseSeconds(text: string): bigint | undefined {
  const found = /^(\d{1,12})(?:\.(\d{0,9})\d*)?$/.exec(text.trim());
  if (!found) return undefined;
  return BigInt(found[1] ?? "0") * 1_000_000_000n + BigInt((found[2] ?? "").padEnd(9, "0"));
}

/** A share of a whole, with two decimals. */
export function share(part: number, whole: number): string {
  return whole > 0 ? `${((part / whole) * 100).toFixed(2)} %` : "0.00 %";
}

/** A count with its noun: `1 stretch`, `3 stretches`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en-US").replaceAll(",", " ")} ${n === 1 ? one : many}`;
}
