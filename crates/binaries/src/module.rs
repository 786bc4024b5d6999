//! One file of the recording, put together from those that have parts of it.

use crate::demangle::demangle;
use crate::dwarf::DwarfFunctions;
use crate::elf::{Elf, LoadSegment, address};
use crate::plt::Plt;
use crate::symtab::FileSymbols;
use crate::why::MissingReason;

/// The layout, the symbols and the DWARF of one file.
#[derive(Debug, Default)]
pub(crate) struct ModuleFile {
    loads: Vec<LoadSegment>,
    symbols: FileSymbols,
    stubs: Plt,
    functions: Option<DwarfFunctions>,
}

impl ModuleFile {
    /// Puts a file together from itself and from its debug file, of which one may be missing.
    pub(crate) fn new(
        binary: Option<Elf>,
        debug: Option<Elf>,
        inlines: bool,
    ) -> Result<ModuleFile, MissingReason> {
        let mut module = ModuleFile::default();
        let mut damaged = None;
        // The debug file first: it has all symbols, where the file has only those that others may use.
        for mut elf in [debug, binary].into_iter().flatten() {
            if elf.has_layout() {
                module.loads.clone_from(&elf.loads);
                module.stubs = Plt::read(&mut elf).unwrap_or_default();
            }
            if !module.symbols.complete {
                match FileSymbols::read(&mut elf) {
                    Ok(symbols) if symbols.complete || module.symbols.is_empty() => {
                        module.symbols = symbols;
                    }
                    Ok(_) => {}
                    Err(why) => damaged = Some(why),
                }
            }
            if inlines && module.functions.is_none() {
                match DwarfFunctions::read(&mut elf) {
                    Ok(functions) => module.functions = functions,
                    Err(why) => damaged = Some(why),
                }
            }
        }
        match damaged {
            Some(why) if module.symbols.is_empty() && module.functions.is_none() => Err(why),
            _ if module.loads.is_empty() => Err(MissingReason::NoLayout),
            _ => Ok(module),
        }
    }

    /// Returns the names of the functions at a place in the file, innermost first.
    pub(crate) fn names(
        &mut self,
        offset: u64,
        names: &mut Vec<String>,
    ) -> Result<(), MissingReason> {
        let address = address(&self.loads, offset).ok_or(MissingReason::NoSymbol)?;
        let mut outer = None;
        if let Some(functions) = &mut self.functions {
            functions.find(address, |name, inlined| match inlined {
                true => names.push(demangle(name)),
                false => outer = Some(demangle(name)),
            });
        }
        // What the function itself is called its symbol says, as perf has it: parts and copies of functions have names
        // of their own there. Symbols that other files may use are not all.
        let symbol = self.symbols.find(address);
        let symbol = match (self.symbols.complete, &outer) {
            (false, Some(_)) => None,
            _ => symbol.map(demangle),
        };
        match symbol.or(outer).or_else(|| self.stubs.find(address)) {
            Some(name) => {
                names.push(name);
                Ok(())
            }
            None => {
                names.clear();
                Err(MissingReason::NoSymbol)
            }
        }
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let functions = self.functions.as_ref().map_or(0, DwarfFunctions::bytes);
        self.symbols.bytes()
            + self.stubs.bytes()
            + functions
            + self.loads.len() * size_of::<LoadSegment>()
    }
}
