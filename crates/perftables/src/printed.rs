//! The readers of printed forms that have a file of their own each.

use crate::table_form::TableForm;
use crate::{
    bpftrace, distribution, kvm_cells, kvm_service_time, kvm_stat, kvmexit, mpstat, perf_report,
    printed_exits, proc_interrupts, strace, strace_counts, timehist, trace_summary, virtiostat,
};

/// The readers. Where two could begin at a line, the first does.
pub(crate) const TABLE_FORMS: &[TableForm] = &[
    kvmexit::TABLE,
    kvm_stat::TABLE,
    timehist::TABLE,
    trace_summary::TABLE,
    strace::TABLE,
    strace_counts::TABLE,
    kvm_service_time::TABLE,
    kvm_cells::TABLE,
    distribution::TABLE,
    bpftrace::TABLE,
    perf_report::TABLE,
    proc_interrupts::TABLE,
    virtiostat::TABLE,
    mpstat::TABLE,
    printed_exits::TABLE,
];
