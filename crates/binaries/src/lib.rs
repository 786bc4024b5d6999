/*!
Names of user space's functions, from object files; the symbols of kernels; and unwinding of user stacks that perf
copied.

[`Binaries`] finds the file that a recording means - by its build id, so that another version of it is never taken for
it - and says which functions a place in it is in, inlined ones included. [`KernelSearch`] finds the symbols of a kernel
in the same way: of this machine's, where that is the one that was recorded, or in files. [`Unwinding`] makes a stack of
registers and of a piece of stack memory. [`ProgramFunctions`] are the places in a file where probes can be made.

Reading files is what this crate is for: it opens those that its caller names and those in the folders it is given,
within limits, and runs `debuginfod-find` if the caller says so. It maps no memory, reads no environment and prints
nothing.

ELF is read by `object`, DWARF and unwind tables by `gimli` and `framehop`, as samply's `wholesym` does; `blazesym`,
which systing took, maps files into memory, where a file that is cut short ends the program, and takes no build id to
check. The search for inlined functions is ours, as that of `addr2line` calls itself as deep as hostile DWARF is nested,
and knows no limit of time.
*/
#![forbid(unsafe_code)]

mod debuginfod;
mod debuginfod_process;
mod demangle;
mod dwarf;
mod elf;
mod finding;
mod kernel;
mod meter;
mod module;
mod names;
mod perf_map;
mod plt;
mod program;
mod read;
mod symtab;
mod unwind;
mod why;

pub use debuginfod_process::{DebuginfodProcess, serve_debuginfod};
pub use demangle::demangle;
pub use finding::{DebuginfodAccess, SearchOptions};
pub use kernel::{KernelImage, KernelSearch, ModuleCode, RunningKernel, loaded_module_has};
pub use names::Binaries;
pub use program::ProgramFunctions;
pub use unwind::{CodeMapping, Unwinding, UserRegisters};
pub use why::MissingReason;
