//! KVM's events.

mod access;
mod apicv;
mod entry;
mod exit;
mod exit_detail;
mod exit_text;
mod halt;
mod run;
mod system_register;
mod unmap;

pub use access::{KvmMmio, KvmMsr, KvmPio, MmioAccess};
pub use apicv::KvmApicvInhibitChanged;
pub use entry::KvmEntry;
pub use exit::KvmExit;
pub use exit_detail::{ExitDetail, ExitQualification};
pub use halt::{KvmHaltPollNs, KvmVcpuWakeup};
pub use run::{KvmFpu, KvmUserspaceExit};
pub use system_register::{KvmSysAccess, SystemRegister};
pub use unmap::KvmUnmapHvaRange;
