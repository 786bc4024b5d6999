/*!
What an address belongs to, as far as the recording itself says: the mappings of each process over time, the kernel and
its modules, kernel symbols, and whose code the addresses of a call chain are.

[`Addresses`] takes the side records of a recording and says which file an address is in. [`KernelFunctions`] names the
kernel's functions, and [`PlacedSymbols`] moves symbols to where a kernel was. [`frames`] and [`kernel_part`] read call
chains. [`UserNames`] is who names functions of user space. Nothing here prints, and no file of the machine that reads
the recording is looked into.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod addresses;
mod chain;
mod files;
mod functions;
mod kernel;
mod mode;
mod modules;
mod places;
mod processes;
mod spaces;
mod user;

pub use addresses::Addresses;
pub use chain::{ChainFrame, UnknownMarker, frames, kernel_part};
pub use files::{FileId, FileRegion, Files};
pub use functions::KernelFunctions;
pub use kernel::{KernelFile, module_of};
pub use mode::CpuMode;
pub use modules::Modules;
pub use places::{KernelPlaces, ModulePlace, PlacedSymbols};
pub use processes::ThreadName;
pub use spaces::SpaceId;
pub use user::{EachMapping, UserMapping, UserNames, UserUnwinder};
