//! Where the kernel and its modules were when they were recorded, and their symbols put there.
//!
//! Source: `tools/perf/util/{machine,symbol}.c` of kernel 6.1 (`machine__process_kernel_mmap_event`,
//! `map__set_kallsyms_ref_reloc_sym`, `kallsyms__delta`), `kernel/module/main.c` of kernels 6.1 and 6.12 (what belongs
//! to a module moves together, and its code lies in one piece).

use std::collections::BTreeMap;

use event::Side;
use tracefmt::{Kallsyms, KallsymsBuilder};

use crate::kernel::module_of;
use crate::mode::CpuMode;

/// Modules kept. A kernel has some hundred.
const MAX_MODULES: usize = 1 << 14;
/// Bytes of a symbol's name: `KSYM_NAME_LEN`.
const MAX_NAME: usize = 512;
/// What kernels and modules are moved by is a multiple of this: the smallest page.
const PAGE: u64 = 4096;

/// The kernel as its mapping record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KernelPlace {
    start: u64,
    end: u64,
    /// A symbol, and the address that it had.
    reference: Option<(Box<str>, u64)>,
    build_id: Option<Box<[u8]>>,
}

/// A module as its mapping record has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModulePlace<'p> {
    /// Its name, without brackets.
    pub name: &'p str,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Its build id, if the record has it.
    pub build_id: Option<&'p [u8]>,
}

#[derive(Debug)]
struct OwnedModule {
    name: Box<str>,
    len: u64,
    build_id: Option<Box<[u8]>>,
}

/// Where the host's kernel and its modules were, by the mapping records in front of a recording's events.
#[derive(Debug, Default)]
pub struct KernelPlaces {
    kernel: Option<KernelPlace>,
    /// Whether records of the kernel contradict each other.
    several: bool,
    /// By first address.
    modules: BTreeMap<u64, OwnedModule>,
}

impl KernelPlaces {
    /// Takes a side record: what is no mapping of the host's kernel mode is passed over.
    pub fn side(&mut self, side: &Side<'_>) {
        let &Side::Mmap {
            start,
            len,
            pgoff,
            misc,
            build_id,
            path,
            ..
        } = side
        else {
            return;
        };
        if CpuMode::of(misc) != CpuMode::Kernel {
            return;
        }
        let build_id = build_id.filter(|id| id.iter().any(|byte| *byte != 0));
        if let Some(symbol) = path.strip_prefix("[kernel.kallsyms]") {
            let known = pgoff > 0 && !symbol.is_empty() && symbol.len() <= MAX_NAME;
            let place = KernelPlace {
                start,
                end: match (start, len) {
                    (0, 0) => u64::MAX,
                    _ => start.saturating_add(len),
                },
                reference: known.then(|| (symbol.into(), pgoff)),
                build_id: build_id.map(Into::into),
            };
            let first = self.kernel.get_or_insert_with(|| place.clone());
            self.several |= *first != place;
            return;
        }
        let name = module_of(path).filter(|_| self.modules.len() < MAX_MODULES);
        if let Some(name) = name {
            self.modules.entry(start).or_insert_with(|| OwnedModule {
                name: name.into(),
                len,
                build_id: build_id.map(Into::into),
            });
        }
    }

    /// Returns the symbol of the kernel by which others are moved, and the address that it had; `None` where the
    /// recording has none, or several that contradict each other.
    pub fn reference(&self) -> Option<(&str, u64)> {
        let kernel = self.kernel.as_ref().filter(|_| !self.several)?;
        let (name, address) = kernel.reference.as_ref()?;
        Some((name, *address))
    }

    /// Returns the kernel's build id, if its mapping record has it.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.kernel.as_ref()?.build_id.as_deref()
    }

    /// Returns the modules, by their first addresses.
    pub fn modules(&self) -> impl Iterator<Item = ModulePlace<'_>> {
        self.modules.iter().map(|(start, module)| ModulePlace {
            name: &module.name,
            start: *start,
            len: module.len,
            build_id: module.build_id.as_deref(),
        })
    }

    /// Returns the address behind what begins at `start`: no module reaches into the next, even though the sizes that
    /// kernels 6.4 and later print have parts in them that lie elsewhere.
    fn end(&self, start: u64, end: u64) -> u64 {
        let mut behind = self.modules.range(start.saturating_add(1)..);
        behind.next().map_or(end, |(next, _)| end.min(*next))
    }
}

/// Symbols of the kernel and its modules, moved to where these were when they were recorded.
#[derive(Debug)]
pub struct PlacedSymbols<'p> {
    places: &'p KernelPlaces,
    table: KallsymsBuilder,
    any: bool,
}

impl<'p> PlacedSymbols<'p> {
    /// Returns one without symbols.
    pub fn new(places: &'p KernelPlaces) -> PlacedSymbols<'p> {
        PlacedSymbols {
            places,
            table: KallsymsBuilder::default(),
            any: false,
        }
    }

    /// Adds the kernel's own symbols. `reference` is where the symbol of [`KernelPlaces::reference`] is among them.
    /// Returns by how many bytes they were moved, which wraps; `None` where they cannot belong to what was recorded, or
    /// their addresses are hidden.
    pub fn add_kernel<'s>(
        &mut self,
        reference: u64,
        symbols: impl Iterator<Item = (u64, &'s str)>,
    ) -> Option<u64> {
        let kernel = self.places.kernel.as_ref()?;
        let (_, recorded) = self.places.reference().filter(|_| reference > 0)?;
        let shift = recorded.wrapping_sub(reference);
        let end = self.places.end(kernel.start, kernel.end);
        self.add(kernel.start, end, shift, symbols).then_some(shift)
    }

    /// Adds the symbols of a module's code; `base` is where the module begins among them, and `len` how many bytes
    /// from there on they are of.
    pub fn add_module<'s>(
        &mut self,
        module: &ModulePlace<'_>,
        (base, len): (u64, u64),
        symbols: impl Iterator<Item = (u64, &'s str)>,
    ) {
        let end = module.start.saturating_add(module.len.min(len));
        let end = self.places.end(module.start, end);
        let shift = module.start.wrapping_sub(base);
        self.add(module.start, end, shift, symbols);
    }

    fn add<'s>(
        &mut self,
        start: u64,
        end: u64,
        shift: u64,
        symbols: impl Iterator<Item = (u64, &'s str)>,
    ) -> bool {
        if !shift.is_multiple_of(PAGE) {
            return false;
        }
        let mut any = false;
        for (address, name) in symbols {
            let address = address.wrapping_add(shift);
            if (start..end).contains(&address) {
                any |= self.table.add(address, name);
            }
        }
        self.any |= any;
        self.table.end(end);
        any
    }

    /// Returns all symbols that were added; `None` if there are none. They reach no further than what they are in.
    pub fn finish(mut self) -> Option<Kallsyms> {
        if !self.any {
            return None;
        }
        let kernel = self.places.kernel.iter();
        let kernel = kernel.map(|kernel| (kernel.start, kernel.end));
        let modules = self.places.modules();
        let modules = modules.map(|module| (module.start, module.start.saturating_add(module.len)));
        for (start, end) in kernel.chain(modules) {
            self.table.end(start);
            self.table.end(self.places.end(start, end));
        }
        Some(self.table.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0xffff_ffff_8100_0000;
    const MODULES: u64 = 0xffff_ffff_c000_0000;

    fn map(start: u64, len: u64, pgoff: u64, misc: u16, path: &str) -> Side<'_> {
        Side::Mmap {
            time: 0,
            pid: -1,
            tid: 0,
            start,
            len,
            pgoff,
            misc,
            exec: true,
            huge: false,
            build_id: None,
            path,
        }
    }

    fn recorded(records: &[Side<'_>]) -> KernelPlaces {
        let mut places = KernelPlaces::default();
        records.iter().for_each(|record| places.side(record));
        places
    }

    #[test]
    fn symbols_are_moved_to_where_the_kernel_was() {
        let places = recorded(&[
            map(TEXT, 0x3000, TEXT, 1, "[kernel.kallsyms]_text"),
            map(MODULES, 0x2000, 0, 1, "[kvm]"),
            map(
                MODULES + 0x1000,
                0x1000,
                0,
                1,
                "/lib/modules/6.1/net/tun.ko.xz",
            ),
            map(MODULES + 0x9000, 0x1000, 0, 4, "[guest]"),
        ]);
        assert_eq!(places.reference(), Some(("_text", TEXT)));
        let names: Vec<&str> = places.modules().map(|module| module.name).collect();
        assert_eq!(names, ["kvm", "tun"]);
        let mut placed = PlacedSymbols::new(&places);
        let kernel = [
            (0x1000, "_text"),
            (0x2000, "schedule"),
            (0x9000, "beyond"),
            (8, "fixed"),
        ];
        let shift = placed.add_kernel(0x1000, kernel.into_iter());
        assert_eq!(shift, Some(TEXT - 0x1000));
        let kvm = places.modules().next().expect("a module");
        placed.add_module(
            &kvm,
            (0x5000, 0x1000),
            [(0x5010, "kvm_read"), (0x6010, "beyond")].into_iter(),
        );
        let symbols = placed.finish().expect("symbols");
        let at = |address| symbols.lookup(address).map(|(name, _)| name);
        assert_eq!(at(TEXT + 0xfff), Some("_text"));
        assert_eq!(at(TEXT + 0x2fff), Some("schedule"));
        assert_eq!(at(TEXT + 0x3000), None, "the kernel ends there");
        assert_eq!(at(MODULES), None);
        assert_eq!(at(MODULES + 0xfff), Some("kvm_read"));
        assert_eq!(at(MODULES + 0x1010), None, "the next module has no names");
    }

    #[test]
    fn nothing_is_moved_by_a_guess() {
        let symbols = || [(0x1000, "_text"), (0x1800, "schedule")].into_iter();
        // No address of the reference, no reference, two that differ, and none of the host's.
        for records in [
            vec![map(TEXT, 0x3000, 0, 1, "[kernel.kallsyms]_text")],
            vec![map(TEXT, 0x3000, TEXT, 1, "[kernel.kallsyms]")],
            vec![
                map(TEXT, 0x3000, TEXT, 1, "[kernel.kallsyms]_text"),
                map(TEXT, 0x3000, TEXT + PAGE, 1, "[kernel.kallsyms]_text"),
            ],
            vec![map(TEXT, 0x3000, TEXT, 4, "[kernel.kallsyms]_text")],
        ] {
            let places = recorded(&records);
            assert_eq!(places.reference(), None);
            let mut placed = PlacedSymbols::new(&places);
            assert_eq!(placed.add_kernel(0x1000, symbols()), None);
            assert!(placed.finish().is_none());
        }
        // Kernels are moved by whole pages.
        let places = recorded(&[map(TEXT, 0x3000, TEXT, 1, "[kernel.kallsyms]_text")]);
        let mut placed = PlacedSymbols::new(&places);
        assert_eq!(placed.add_kernel(0x1010, symbols()), None);
        assert!(placed.finish().is_none());
    }
}
