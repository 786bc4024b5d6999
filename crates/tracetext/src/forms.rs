//! What the reader of traces declares: one form for each tool whose lines it reads.

use forms::InputForm;

/// The forms of events' lines that are read. Their lines are read token by token, so columns that are missing, quote
/// marks and line numbers before them do no harm.
pub const FORMS: &[InputForm] = &[
    InputForm {
        printed_by: "perf script",
        recognised_by: "lines of a task, a thread, a time and an event, with the CPU or without; stacks below",
        yields: "events, samples with their stacks",
        fixtures: &[
            "tests/texts/perf-6.1-kvm-no-cpu.txt",
            "tests/texts/perf-6.1-samples-no-cpu.txt",
            "tests/texts/perf-4.19-samples-no-cpu.txt",
        ],
    },
    InputForm {
        printed_by: "trace-cmd report",
        recognised_by: "lines of `task-thread [CPU] time: event:`",
        yields: "events",
        fixtures: &[
            "../../corpus/seed-text/case1-irqfd.trace-cmd.txt",
            "../../corpus/seed-text/case1-slow-ping.sched.txt",
        ],
    },
    InputForm {
        printed_by: "the kernel's trace and trace_pipe",
        recognised_by: "the same with flags behind the CPU, without the task's column or the CPU, in latency format, \
                        raw",
        yields: "events; what was overwritten before a buffer's first event",
        fixtures: &["tests/texts/ftrace-5.4.txt", "tests/texts/ftrace-6.1.txt"],
    },
    InputForm {
        printed_by: "the function_graph tracer",
        recognised_by: "lines of a CPU, a duration, a bar and a call",
        yields: "entries and exits of functions where lines have a time (`funcgraph-abstime`); else they are counted",
        fixtures: &["tests/texts/function_graph-abstime.txt"],
    },
];
