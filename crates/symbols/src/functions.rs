//! Names of the kernel's functions.

use std::ops::Range;

use tracefmt::Kallsyms;

use crate::modules::Modules;

/// Names the kernel's functions: by the symbols in the recording, and by those given beside it where it has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelFunctions<'k> {
    tables: [Option<&'k Kallsyms>; 2],
    modules: Option<&'k Modules>,
}

impl<'k> KernelFunctions<'k> {
    /// `recorded` are the recording's own symbols, `given` those that are asked where these know nothing.
    pub fn new(recorded: Option<&'k Kallsyms>, given: Option<&'k Kallsyms>) -> KernelFunctions<'k> {
        KernelFunctions {
            tables: [recorded, given],
            modules: None,
        }
    }

    /// Returns the same where it is known where modules are: a function in front of a module does not reach into it.
    pub fn with_modules(self, modules: &'k Modules) -> KernelFunctions<'k> {
        KernelFunctions {
            modules: Some(modules),
            ..self
        }
    }

    /// Returns the module that an address is in, and where that begins, if that is known.
    pub fn module(&self, address: u64) -> Option<(&'k str, u64)> {
        self.modules?.find(address)
    }

    /// Returns the function at an address.
    pub fn name(&self, address: u64) -> Option<&'k str> {
        let mut tables = self.tables.iter().flatten();
        let found = tables.find_map(|table| table.lookup(address));
        let (name, offset) = found?;
        let within = match self.module(address) {
            Some((_, start)) => address - start >= offset,
            None => true,
        };
        within.then_some(name)
    }

    /// Returns the name of the function at an address, or the address as it is printed where nothing names it.
    pub fn name_or_address(&self, address: u64) -> String {
        match self.name(address) {
            Some(name) => name.to_owned(),
            None => format!("{address:#x}"),
        }
    }

    /// Returns where functions begin, in order, each address once; and where modules do and end, which bounds them.
    pub fn starts(&self) -> Vec<u64> {
        let tables = self.tables.iter().flatten();
        let bounds = self.modules.iter().flat_map(|modules| modules.bounds());
        let mut starts: Vec<u64> = tables.flat_map(|table| table.starts()).collect();
        starts.extend(bounds);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Returns the addresses of the function of that name. Takes a look at every symbol.
    pub fn range(&self, name: &str) -> Option<Range<u64>> {
        let mut tables = self.tables.iter().flatten();
        tables.find_map(|table| table.range(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_end_where_modules_begin() {
        let own = Kallsyms::parse(b"1000 T before\n2100 T within\n4000 T end\n");
        let modules = Modules::parse(b"virtio_net 4096 0 - Live 0x2000\n");
        let functions = KernelFunctions::new(Some(&own), None);
        assert_eq!(functions.name(0x2004), Some("before"));
        let functions = functions.with_modules(&modules);
        assert_eq!(functions.name(0x2004), None);
        assert_eq!(functions.module(0x2004), Some(("virtio_net", 0x2000)));
        assert_eq!(functions.name(0x2104), Some("within"));
        assert_eq!(functions.name(0x1004), Some("before"));
        assert_eq!(functions.starts(), [0x1000, 0x2000, 0x2100, 0x3000, 0x4000]);
    }

    #[test]
    fn symbols_of_the_recording_come_first() {
        let own = Kallsyms::parse(b"1000 T own\n2000 T end\n");
        let given = Kallsyms::parse(b"1000 T other\n3000 T given\n4000 T end\n");
        let functions = KernelFunctions::new(Some(&own), Some(&given));
        assert_eq!(functions.name(0x1004), Some("own"));
        assert_eq!(functions.name(0x3004), Some("given"));
        assert_eq!(functions.range("given"), Some(0x3000..0x4000));
        assert_eq!(functions.name_or_address(0x10), "0x10");
        assert_eq!(KernelFunctions::default().name(0x1004), None);
    }
}
