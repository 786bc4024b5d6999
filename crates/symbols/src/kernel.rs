//! The kernel and its modules: where they are, and how perf names them.
//!
//! Source: `tools/perf/util/{machine,dso}.c` of kernel 6.1 (`machine__process_kernel_mmap_event`,
//! `machine__process_ksymbol`, `__kmod_path__parse`).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::files::{FileId, FileRegion, Files};
use crate::spaces::MAX_MAPS;

/// A kernel or a module that the recording has a build id of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFile<'f> {
    /// File name, as the recorder saw it.
    pub path: &'f str,
    /// Whether it is the guests'.
    pub guest: bool,
}

/// Code of the kernel; its first address is its key.
#[derive(Debug, Clone, Copy)]
struct KernelMap {
    end: u64,
    file: FileId,
    /// Whether the file's name is the name of a symbol too: code that the kernel made.
    symbol: bool,
}

/// The kernel and its modules: the host's or the guest's.
#[derive(Debug)]
pub(crate) struct KernelMaps {
    maps: BTreeMap<u64, KernelMap>,
    /// First address of the kernel itself, once it is known.
    kernel: Option<u64>,
    kernel_file: FileId,
    /// Modules that print as the file of their build id, by the name they would have without.
    modules: FxHashMap<Box<[u8]>, FileId>,
    guest: bool,
}

impl KernelMaps {
    /// Takes the names of the files that have build ids: perf prints those instead of its own.
    pub(crate) fn new(guest: bool, known: &[KernelFile<'_>], files: &mut Files) -> KernelMaps {
        let mut kernel_file = None;
        let mut modules = FxHashMap::default();
        for known in known.iter().filter(|k| k.guest == guest) {
            let path = known.path.as_bytes();
            let (name, module) = module_name(path);
            let file = files.intern(path);
            if module {
                modules.entry(name.into_boxed_slice()).or_insert(file);
            } else {
                kernel_file.get_or_insert(file);
            }
        }
        let name: &[u8] = if guest {
            b"[guest.kernel.kallsyms]"
        } else {
            b"[kernel.kallsyms]"
        };
        KernelMaps {
            maps: BTreeMap::new(),
            kernel: None,
            kernel_file: kernel_file.unwrap_or_else(|| files.intern(name)),
            modules,
            guest,
        }
    }

    /// Takes what a mapping record of kernel mode says.
    pub(crate) fn map(&mut self, start: u64, len: u64, path: &[u8], files: &mut Files) {
        // Names go on with the symbol that gave the address, or with the guest's process id.
        let is_kernel = path.starts_with(b"[kernel.kallsyms")
            || self.guest && path.starts_with(b"[guest.kernel.kallsyms");
        if is_kernel {
            if let Some(old) = self.kernel.take() {
                self.maps.remove(&old);
            }
            let end = match (start, len) {
                (0, 0) => u64::MAX,
                _ => start.wrapping_add(len),
            };
            let map = KernelMap {
                end,
                file: self.kernel_file,
                symbol: false,
            };
            self.maps.insert(start, map);
            self.kernel = Some(start);
        } else if path.starts_with(b"/") || path.starts_with(b"[") {
            let (name, _) = module_name(path);
            let file = match self.modules.get(&name[..]) {
                Some(&file) => file,
                None => files.intern(&name),
            };
            self.add(
                start,
                KernelMap {
                    end: start.wrapping_add(len),
                    file,
                    symbol: false,
                },
            );
        } else if path == b"__entry_SYSCALL_64_trampoline" {
            // Kernels 4.15 to 4.20 entered through a page of each CPU's own.
            let map = KernelMap {
                end: start.wrapping_add(len),
                file: self.kernel_file,
                symbol: false,
            };
            self.add(start, map);
        }
    }

    /// Takes code that the kernel made.
    pub(crate) fn add_symbol(&mut self, start: u64, len: u64, name: &[u8], files: &mut Files) {
        if self.find(start).is_none() {
            let map = KernelMap {
                end: start.wrapping_add(len),
                file: files.intern(name),
                symbol: true,
            };
            self.add(start, map);
        }
    }

    /// Forgets code that the kernel made.
    pub(crate) fn remove_symbol(&mut self, start: u64) {
        if let Some(region) = self.find(start)
            && self.kernel != Some(region.start)
        {
            self.maps.remove(&region.start);
        }
    }

    fn add(&mut self, start: u64, map: KernelMap) {
        if self.maps.len() < MAX_MAPS {
            self.maps.entry(start).or_insert(map);
        }
    }

    /// Returns what an address belongs to.
    pub(crate) fn find(&self, address: u64) -> Option<FileRegion> {
        let (&start, &KernelMap { end, file, symbol }) = self.maps.range(..=address).next_back()?;
        // Where the recorder did not know the kernel's end, it goes on behind all modules.
        let end = match self.maps.range(address..).find(|next| *next.0 > start) {
            Some((&next, _)) => end.min(next),
            None => end,
        };
        let region = FileRegion {
            start,
            end,
            shift: 0,
            file,
            symbol,
        };
        region.has(address).then_some(region)
    }
}

/// Returns the name of the module that perf means by a file's name, without brackets; `None` if it is no module's.
pub fn module_of(path: &str) -> Option<String> {
    let (name, is_module) = module_name(path.as_bytes());
    let name = String::from_utf8(name).ok().filter(|_| is_module)?;
    let name = name.strip_prefix('[')?.strip_suffix(']')?;
    Some(name.to_owned())
}

/// Returns perf's name of a file of the kernel, and whether it is a module's: `[kvm_amd]` of
/// `/lib/modules/6.1.0/kernel/arch/x86/kvm/kvm-amd.ko.xz`.
fn module_name(path: &[u8]) -> (Vec<u8>, bool) {
    let base = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let name = &path[base..];
    if name.starts_with(b"[") {
        let kernel: [&[u8]; 6] = [
            b"[kernel.kallsyms]",
            b"[guest.kernel.kallsyms",
            b"[vdso]",
            b"[vdso32]",
            b"[vdsox32]",
            b"[vsyscall]",
        ];
        return (name.to_vec(), !kernel.iter().any(|k| name.starts_with(k)));
    }
    let Some(dot) = path.iter().rposition(|&b| b == b'.') else {
        return (name.to_vec(), false);
    };
    // perf 6.1 knows no other compressions.
    let packed = matches!(&path[dot..], b".gz" | b".xz");
    let dot = if packed { dot.saturating_sub(3) } else { dot };
    let module = dot > base && path[dot..].starts_with(b".ko");
    let mut name = if module {
        [b"[", &path[base..dot], b"]"].concat()
    } else {
        name.to_vec()
    };
    for byte in &mut name {
        if *byte == b'-' {
            *byte = b'_';
        }
    }
    (name, module)
}
