/*!
Tickets, mails and pages: texts in which several things stand, with prose between. [`read`] cuts one into its parts by
their content, whatever stands around them.

| part | what it is |
| --- | --- |
| [`PartKind::Trace`] | lines of events, of one recording; texts have no mark where another begins, so a time that goes back, or far forward across other text, is one |
| [`PartKind::Table`] | a table that a tool printed (`perftables`) |
| [`PartKind::Definition`] | the definition of a guest (`domain`) |
| [`PartKind::Facts`] | lines about a host or its VMs (`facts`) |
| [`PartKind::Score`] | what a benchmark found (`results`) |

What is left is prose, or looks like a tool's output and is not read; the latter is counted ([`UnreadLines`]), since
how much of a text was read is the first thing to say of it.

A part without a name of its own has that of the nearest heading or sentence before it.

Lines are counted from 1, and end as `perftables` ends them: LF, CR, or both.

```
let text = b"\
The guest hangs:

qemu-kvm-12 [001]  444.000100: kvm_exit: reason HLT rip 0x1 info 0 0
qemu-kvm-12 [001]  444.000200: kvm_entry: vcpu 0

while the host counts this:

 Performance counter stats for 'system wide':

         120,345      kvm:kvm_exit
         120,346      kvm:kvm_entry

      10.047327675 seconds time elapsed
";
let ticket = ticket::read(text);
let lines: Vec<(u64, u64)> = ticket.parts.iter().map(|part| (part.first_line, part.last_line)).collect();
assert_eq!(lines, [(3, 4), (8, 13)]);
assert_eq!(ticket.parts[0].name.as_deref(), Some("The guest hangs"));
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod commands;
mod coverage;
mod definitions;
mod lines;
mod names;
mod parts;
mod ticket_part;
mod traces;

pub use commands::{NamedCommand, named_commands};
pub use coverage::UnreadLines;
pub use definitions::PlacedDefinition;
pub use parts::{PlacedTrace, Ticket, read};
pub use ticket_part::{PartKind, TicketPart};

/// Bytes of the longest text that is cut: longer ones are recordings.
pub const MAX_BYTES: usize = 8 << 20;
