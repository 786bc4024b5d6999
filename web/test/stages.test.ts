import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsOf, rows } from "../src/timeline/rows.js";
import { hops, instanceOf, lanesOf, markOf } from "../src/timeline/stages.js";
import { View } from "../src/timeline/view.js";
import { data } from "./support.js";

const lane = (id: string, group: string, label: string): object => ({ id, group, label, detail: "", vm: group === "cpus" ? "" : "a", cells: [] });

/** A vCPU kicks its vhost worker; an interrupt, on CPU 1, leads back to the vCPU. A guest's step has none of the host's CPUs. */
const SAMPLE = data([], {
  length_ns: 10_000,
  names: [""],
  lanes: [lane("tid-10", "vcpus", "vCPU 0"), lane("tid-30", "threads", "vhost-9"), lane("cpu-1", "cpus", "CPU 1")],
  marks: [{
    id: "path:kick", label: "kick", marks: [900, 400, 1, 400, 0, 0, 100, 7, 80, 0],
    step_names: ["CPU 0/KVM:10", "vhost-9:30", "idle:0", "kicked", "runs", "raised", "in the guest"],
    instances: [{ number: 3, begin: 900, steps: [0, 2, 0, 1, 3, 100, 1, 1, 1, 4, 200, 1, 1, 2, 5, 100, -1, 2, 0, 6] }],
  }],
});

test("an instance's way goes from thread to thread, and over CPUs where a thread has no lane", () => {
  const [all, groups] = [rows(SAMPLE, new Set()), groupsOf(SAMPLE)];
  const y = (label: string): number => {
    const row = all.find((one) => one.type === "lane" && one.label === label);
    return (row?.top ?? NaN) + (row?.height ?? NaN) / 2;
  };
  const [vcpu, vhost, cpu] = [y("vCPU 0"), y("vhost-9"), y("CPU 1")];
  const one = instanceOf(SAMPLE.marks[0], 0);
  const found = hops(SAMPLE, one, all, groups, new View(10_000), 1000);
  // The last one comes from a thread and a CPU that have no lane, so it has no place.
  assert.deepEqual(found, [
    { x: 90, from: vcpu, to: vhost, before: undefined },
    { x: 100, from: vhost, to: vhost, before: { x: 90, y: vhost } },
    { x: 120, from: vhost, to: cpu, before: { x: 100, y: vhost } },
  ]);
  assert.deepEqual(hops(SAMPLE, undefined, all, groups, new View(10_000), 1000), []);
  assert.deepEqual(one?.steps.map(({ time, name }) => [time, name]), [[900, "kicked"], [1000, "runs"], [1200, "raised"], [1300, "in the guest"]]);
});

test("an instance is found by its mark, and its mark by its times and path", () => {
  assert.equal(instanceOf(SAMPLE.marks[0], 0)?.number, 3);
  assert.equal(instanceOf(SAMPLE.marks[0], 1), undefined);
  assert.deepEqual(markOf(SAMPLE, 900, 1300, "kick"), { line: 0, index: 0 });
  assert.equal(markOf(SAMPLE, 900, 1301, "kick"), undefined);
  assert.equal(markOf(SAMPLE, 900, 1300, "irqfd"), undefined);
  assert.deepEqual(lanesOf(SAMPLE, { line: 0, index: 0 }), [0, 1]);
});
