/*!
How numbers and names are put into sentences and tables: durations, shares, counts, lists, what VMs and vCPUs are
called.

Everything that a person reads is written with these, so that a number looks the same wherever it stands. This crate
depends on no other of the workspace.

```
assert_eq!(words::duration::human(1_500_000), "1.500ms");
assert_eq!(words::share::of(1, 8), "12.50 %");
assert_eq!(words::plural(2u64, "exit"), "2 exits");
assert_eq!(words::times(1), "once");
```
*/
#![forbid(unsafe_code)]

mod causes;
mod count;
pub mod duration;
mod io_reason;
mod list;
mod near;
mod number;
mod one_line;
pub mod parts;
pub mod share;
mod task_name;
mod utc;
mod who;

pub use causes::causes;
pub use count::{counted, lines, plural, times};
pub use io_reason::io_reason;
pub use list::{capital, list, list_first};
pub use near::{did_you_mean, nearest};
pub use number::{change, large, number, rose, went};
pub use one_line::on_one_line;
pub use task_name::task_comm;
pub use utc::{parse_utc_day, utc, utc_day};
pub use who::{is_vm_name, vcpu, with_thread};
