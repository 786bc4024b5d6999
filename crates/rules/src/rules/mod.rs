//! The rules, one file each.

mod apic_exits;
mod autoeoi;
mod console;
mod governor;
mod halt_poll;
mod halted_ipi;
mod host_tick;
mod hpet_mmio;
mod lossy;
mod memory_faults;
mod migrates;
mod nested;
mod pause_loop;
mod preempted;
mod sender_memory;
mod stalled;
mod timer_ports;
mod timer_storm;
mod tracing;
mod virtio_backend;

use crate::Rule;

/// All of them, by name.
pub(crate) const ALL: &[&Rule] = &[
    &timer_ports::RULE,
    &hpet_mmio::RULE,
    &timer_storm::RULE,
    &halted_ipi::RULE,
    &console::RULE,
    &virtio_backend::RULE,
    &governor::RULE,
    &sender_memory::RULE,
    &preempted::RULE,
    &migrates::RULE,
    &halt_poll::RULE,
    &pause_loop::RULE,
    &memory_faults::RULE,
    &host_tick::RULE,
    &apic_exits::RULE,
    &autoeoi::RULE,
    &nested::RULE,
    &stalled::RULE,
    &lossy::RULE,
    &tracing::RULE,
];
