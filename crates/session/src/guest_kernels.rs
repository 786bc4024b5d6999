//! Symbols of guests' kernels: one for all guests, or those of each guest's own file system, mounted as perf has it.

use std::io;
use std::path::Path;

use source::read_beside;
use symbols::{KernelFunctions, Modules};
use tracefmt::Kallsyms;

use crate::{Error, InputPurpose, Session, kallsyms};

/// A list of modules is not read beyond this many bytes: a line has some fifty.
const MAX_MODULES: u64 = 8 << 20;

/// Symbols of the kernels of a recording's guests.
#[derive(Debug, Default)]
pub struct GuestKernels {
    kernels: Vec<(i32, Option<Kallsyms>, Modules)>,
    /// Guests below whose folder there are no symbols.
    without: Vec<i32>,
}

impl GuestKernels {
    /// Returns what names functions of each guest, by the process of its VM.
    pub fn functions(&self) -> Vec<(i32, KernelFunctions<'_>)> {
        let kernels = self.kernels.iter();
        let all = kernels.map(|(pid, symbols, modules)| {
            let functions = KernelFunctions::new(symbols.as_ref(), None);
            (*pid, functions.with_modules(modules))
        });
        all.collect()
    }

    /// Returns the guests that have no symbols below their folder.
    pub fn without(&self) -> &[i32] {
        &self.without
    }
}

impl Session {
    /// Reads `PID/proc/kallsyms` and `PID/proc/modules` of the folder with the guests' file systems (`--guestmount` of
    /// perf), for guests by the processes of their VMs.
    ///
    /// # Errors
    ///
    /// Fails when such a file is there and cannot be used.
    pub fn guest_kernels(&self, guests: &[i32]) -> Result<GuestKernels, Error> {
        let mut found = GuestKernels::default();
        let Some(mount) = self.options().guestmount.as_deref() else {
            return Ok(found);
        };
        for pid in guests {
            let proc = mount.join(pid.to_string()).join("proc");
            let path = proc.join("kallsyms");
            let symbols = match kallsyms::open("--guestmount", Some(&path)) {
                Ok(symbols) => symbols,
                Err(Error::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                    None
                }
                Err(error) => return Err(error),
            };
            let modules = match read_beside(&proc.join("modules"), MAX_MODULES) {
                Ok(text) => Modules::parse(&text),
                Err(_) => Modules::default(),
            };
            if symbols.is_none() {
                found.without.push(*pid);
                continue;
            }
            found.kernels.push((*pid, symbols, modules));
        }
        Ok(found)
    }
}

/// Reads a copy of a guest's `/proc/modules`.
pub(crate) fn modules(path: Option<&Path>) -> Result<Modules, Error> {
    let Some(path) = path else {
        return Ok(Modules::default());
    };
    let name = format!("--guest-modules {}", path.display());
    let wanted = InputPurpose::Modules;
    let text = read_beside(path, MAX_MODULES);
    let text = text.map_err(|error| Error::Unreadable {
        name: name.clone(),
        error,
        wanted,
    })?;
    let modules = Modules::parse(&text);
    if modules.is_empty() {
        return Err(Error::Nothing {
            name,
            reason: "holds no modules with addresses".to_owned(),
            wanted,
        });
    }
    Ok(modules)
}
