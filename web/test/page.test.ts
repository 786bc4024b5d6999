import assert from "node:assert/strict";
import { test } from "node:test";
import { pins } from "../src/overview.js";
import { code, markdown, plain } from "../src/ticket.js";
import { marksOfVm } from "../src/timeline/marks.js";
import { known, vmOfRow, vmsOf } from "../src/vms.js";
import { data } from "./support.js";

const LANES = [
  { id: "tid-10", group: "vcpus", detail: "thread 10, process 9", vm: "win10" },
  { id: "tid-11", group: "threads", detail: "thread 11, process 11", vm: "win10" },
  { id: "tid-20", group: "vcpus", detail: "thread 20, process 19", vm: "win10-2" },
  { id: "tid-30", group: "threads", detail: "thread 30, process 30", vm: "" },
  { id: "cpu-0", group: "cpus", detail: "", vm: "" },
];

test("a row is of the VM that its thread, its process or its name says", () => {
  const vms = known(LANES);
  assert.deepEqual(vms.names, ["win10", "win10-2"]);
  const of = (row: Record<string, string>): string | undefined => vmOfRow(vms, new Map(Object.entries(row)));
  assert.equal(of({ vm_name: "x", vm_pid: "9", vcpu: "0", tid: "10" }), "win10");
  assert.equal(of({ vcpu: "win10-2, vCPU 0", vcpu_tid: "20", behind: "socat:10", tid: "10" }), "win10-2");
  assert.equal(of({ vm: "win10-2", vm_pid: "77", tid: "77" }), "win10-2");
  assert.equal(of({ vcpu: "win10, vCPU 3" }), "win10");
  // A host's thread, a VM that nobody knows, and a table that says no VM: those stay.
  assert.equal(of({ comm: "socat", pid: "10", tid: "10" }), undefined);
  assert.equal(of({ vm_name: "other", vm_pid: "5", tid: "5" }), undefined);
});

test("a finding is about VMs that it links to or names, and no name is taken for another's beginning", () => {
  const vms = known(LANES);
  const of = (text: string, ...hashes: string[]): string[] => [...vmsOf(vms, text, hashes)].sort();
  assert.deepEqual(of("interrupts for win10-2 took 5 ms"), ["win10-2"]);
  assert.deepEqual(of("win10 waits for win10-2"), ["win10", "win10-2"]);
  assert.deepEqual(of("x", "#t=1,2&lane=tid-10,cpu-0"), ["win10"]);
  assert.deepEqual(of("all VMs are slow", "#t=1,2", "#t=1,2&lane=tid-30"), []);
});

test("marks of other VMs are left out, and those of several stay", () => {
  const lanes = LANES.map((lane) => ({ ...lane, label: lane.id, cells: [0, 10, 0, 0, 0, 0] }));
  const marks = [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 7, 1, 0, 1, 1, 1, 1, 3];
  const some = data([], { lanes, names: ["", "CPU 0/KVM:10", "CPU 0/KVM:20", "ssh:30"], marks: [{ id: "path:x", label: "x", slow_ns: 5, marks }] });
  const shown = (vm: string): number[][] => marksOfVm(some, some.marks, vm).map((line) => [...line.begin]);
  assert.deepEqual([shown(""), shown("win10"), shown("win10-2")], [[[1, 2, 3, 4]], [[1, 3, 4]], [[2, 3, 4]]]);
  const [line] = marksOfVm(some, some.marks, "win10-2");
  assert.deepEqual([line?.count, [...(line?.of ?? [])], [...(line?.what ?? [])], line?.slow], [3, [1, 7, 1], [2, 0, 3], 5]);
});

test("findings stand on the small timeline where they are, and none over another", () => {
  const link = (label: string, hash: string) => ({ finding: `finding-${label}`, label, title: `${label}. x`, hash });
  const found = pins([link("1", "#t=2.5,2.6"), link("1", "#t=2.5001,2.6"), link("2", "#t=2.51,2.52&lane=tid-1"), link("3", "#t=1,11"), link("4", "#t=3,4&rec=1"), link("2", "#t=9,99")], 1_000_000_000n, 1e10, 0);
  assert.deepEqual(found.map(({ label, from, line }) => [label, Number(from.toFixed(4)), line]), [["1", 0.15, 0], ["2", 0.151, 1], ["2", 0.8, 0]]);
  assert.equal(found[2]?.to, 1);
  assert.deepEqual(pins([link("4", "#t=3,4&rec=1")], 1_000_000_000n, 1e10, 1).length, 1);
});

test("a ticket is Markdown in which names are no markup", () => {
  assert.equal(plain("a_b *c* [x](y) <img> `q`\n| 1"), "a\\_b \\*c\\* \\[x\\](y) \\<img\\> \\`q\\` \\| 1");
  assert.deepEqual(["# x", "- x", "1. x", "12 x"].map(plain), ["\\# x", "\\- x", "\\1. x", "12 x"]);
  assert.equal(plain("\u001b[0m"), "\\\\x1b\\[0m");
  assert.deepEqual(["a b", "a`b", "``"].map(code), ["`a b`", "`` a`b ``", "``` `` ```"]);
  const text = markdown({
    title: "A vCPU waits", facts: "high, steal, confidence 0.95", evidence: ["5 of 7", "x"], cause: "The CPU is shared.",
    remedies: [{ what: "Pin it", more: [["Price", "a CPU"]] }, { what: "Wait", more: [] }], report: "a.trace.dat", command: "trapline diagnose a.trace.dat",
  });
  assert.equal(text, "### A vCPU waits\n\nhigh, steal, confidence 0.95\n\n**Evidence**\n\n- 5 of 7\n- x\n\n**Cause:** The CPU is shared.\n\n" +
    "**Remedy 1:** Pin it\n\n- Price: a CPU\n\n**Remedy 2:** Wait\n\nFrom `a.trace.dat`; `trapline diagnose a.trace.dat` prints it.\n");
});
