// One VM alone: its lanes, its rows of tables that say whose they are, and findings that are about it or about no VM in particular.

import { say } from "./copy.js";
import { all, button, make } from "./dom.js";
import { parse } from "./hash.js";
import type { Timeline } from "./timeline/timeline.js";

/** What is known of VMs: by the ids of lanes, by process, and by name. */
export interface LanesByVm {
  names: string[];
  byLane: Map<string, string>;
  byProcess: Map<string, string>;
}

/** What lanes say of VMs. */
export function known(lanes: readonly { id: string; group: string; detail: string; vm: string }[]): LanesByVm {
  const out: LanesByVm = { names: [], byLane: new Map(), byProcess: new Map() };
  for (const { id, group, detail, vm } of lanes) {
    if (vm === "") continue;
    if (!out.names.includes(vm)) out.names.push(vm);
    out.byLane.set(id, vm);
    const process = /process (\d+)$/.exec(detail)?.[1];
    if (process && group === "vcpus") out.byProcess.set(process, vm);
  }
  return out;
}

/** The VM that a row is of; nothing where it does not say. `row` is its exact values by the names of columns. */
export function vmOfRow(vms: LanesByVm, row: ReadonlyMap<string, string>): string | undefined {
  const isOfVm = ["vm", "vm_name", "vm_pid", "vcpu", "vcpu_tid"].some((column) => row.has(column));
  if (!isOfVm) return undefined;
  const tid = row.get("vcpu_tid") ?? row.get("tid") ?? "";
  const found = vms.byLane.get(`tid-${tid}`) ?? vms.byProcess.get(row.get("vm_pid") ?? "");
  const name = row.get("vm") ?? row.get("vcpu")?.replace(/,? ?vCPU \d+$/, "") ?? "";
  return found ?? (vms.names.includes(name) ? name : undefined);
}

/** The VMs that a finding is about: those whose lanes it links to, and those that it names. None: of all, or of none in particular. */
export function vmsOf(vms: LanesByVm, text: string, hashes: readonly string[]): Set<string> {
  const lanes = hashes.flatMap((hash) => parse(hash)?.lanes ?? []);
  const found = new Set(lanes.flatMap((lane) => vms.byLane.get(lane) ?? []));
  // A name may be the beginning of another one: the longest that fits counts.
  let rest = text;
  for (const name of [...vms.names].sort((a, b) => b.length - a.length)) {
    if (!rest.includes(name)) continue;
    found.add(name);
    rest = rest.replaceAll(name, " ");
  }
  return found;
}

/** Hides rows of tables that are of other VMs; returns how many. */
function filterTables(vms: LanesByVm, vm: string): number {
  let hidden = 0;
  for (const table of all<HTMLTableElement>("table.data")) {
    if (table.closest(".timeline")) continue;
    const columns = all("thead th", table).map((head) => head.dataset["column"] ?? "");
    for (const row of all<HTMLTableRowElement>("tbody tr", table)) {
      const cells = new Map(columns.map((column, at) => [column, row.cells[at]?.getAttribute("data-v") ?? (row.cells[at]?.textContent ?? "").trim()]));
      const own = vm === "" ? undefined : vmOfRow(vms, cells);
      row.hidden = own !== undefined && own !== vm;
      hidden += Number(row.hidden);
    }
  }
  return hidden;
}

/** Hides findings that are about other VMs, and what names them in the overview; returns how many. */
function filterFindings(vms: LanesByVm, vm: string): number {
  let hidden = 0;
  for (const finding of all(".finding")) {
    const links = all<HTMLAnchorElement>("a[href^='#t=']", finding).map((link) => link.getAttribute("href") ?? "");
    const own = vm === "" ? new Set<string>() : vmsOf(vms, finding.textContent ?? "", links);
    finding.hidden = own.size > 0 && !own.has(vm);
    hidden += Number(finding.hidden);
    if (finding.id === "") continue;
    for (const link of all(`a[href="#${CSS.escape(finding.id)}"]`)) (link.closest("li") ?? link).hidden = finding.hidden;
    for (const pin of all(`[data-finding="${CSS.escape(finding.id)}"]`)) pin.hidden = finding.hidden;
  }
  return hidden;
}

/** Puts the filter into the page's head, where there are several VMs. Returns what chooses one, for links. */
export function start(timelines: readonly Timeline[]): ((vm: string) => void) | undefined {
  const vms = known(timelines.flatMap((one) => one.data.lanes));
  const host = document.getElementById("search");
  if (!host || vms.names.length < 2) return undefined;
  const select = make("select", { id: "vm-filter" }, make("option", { value: "" }, `all ${vms.names.length} VMs`));
  for (const name of vms.names) select.append(make("option", { value: name }, name));
  const note = make("p", { class: "vm-note", hidden: "" });
  const choose = (vm: string): void => {
    // A link may be one to another page.
    if (vm !== "" && !vms.names.includes(vm)) return;
    select.value = vm;
    for (const one of timelines) one.only(vm);
    const rows = filterTables(vms, vm);
    const findings = filterFindings(vms, vm);
    note.hidden = vm === "";
    const left = `${rows} row${rows === 1 ? "" : "s"} and ${findings} finding${findings === 1 ? "" : "s"} of other VMs are left out`;
    note.replaceChildren(`Only ${vm}: ${left}; sums, and what says no VM, are of all. `, button("Show all VMs", () => choose(""), { class: "small" }));
    say(vm === "" ? "All VMs are shown" : `Only ${vm} is shown, ${left}`);
  };
  for (const one of timelines) one.leaveVm = () => choose("");
  select.addEventListener("change", () => choose(select.value));
  host.prepend(make("label", { class: "vm-filter" }, "VM ", select));
  host.closest("header")?.append(note);
  return choose;
}
