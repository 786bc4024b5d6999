/*!
Tracepoint `format` files: the fields of an event and the way the kernel prints it.

Every tracepoint of the kernel describes itself in a small text
(`/sys/kernel/tracing/events/SYSTEM/NAME/format`), and every recording carries those texts: trace.dat in
its header, perf.data in its tracing data section. This crate turns the texts into [`EventFormat`]s, reads
[`FormatField`]s out of raw records and evaluates the `print fmt:` line.

It does no I/O, never panics on any input and never fails as a whole: a format whose `print fmt:` cannot
be understood still has its fields, and prints them raw.

```
use tracefmt::{Abi, EventFormat};

let text = b"name: kvm_hv_timer_state\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"vcpu_id %x\", REC->vcpu_id\n";
let format = EventFormat::parse("kvm", text, Abi::default()).expect("a format");
let record = [7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
let vcpu = format.field("vcpu_id").expect("a field");
assert_eq!(vcpu.value(&record, format.abi.endian), Some(3));
```

Sources: the kernel's `kernel/trace/trace_events.c` (which writes the texts), `include/trace/stages/`
(the macros behind `print fmt:`), and `Documentation/trace/events.rst`.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod abi;
mod cast;
mod catalog;
mod field;
mod format;
mod index;
mod kallsyms;
mod print;
mod text;
mod tracing_data;

pub use abi::{Abi, Diagnostic, Endian};
pub use catalog::{FormatCatalog, HeaderPage};
pub use field::{FieldKind, FormatField};
pub use format::EventFormat;
pub use index::index_of;
pub use kallsyms::{Kallsyms, KallsymsBuilder, KallsymsLine, KallsymsLines};
pub use print::{FormatPrinter, PrintStyle};
pub use text::{FormatText, is_plain};
pub use tracing_data::{Cursor, TracingSection, parse_tracing_data};
