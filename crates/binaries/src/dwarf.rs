//! Functions that a compiler put into others, by DWARF.
//!
//! Parts of DWARF may refer to others over and over, and be nested without end. Everything here is read through a
//! [`ReadMeter`], nothing calls itself, and what is kept has a most.

use std::ops::Range;
use std::sync::Arc;

use gimli::{
    Abbreviation, AttributeValue, DebugAddrBase, DebugInfoOffset, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, Dwarf, EntriesRaw, RunTimeEndian, SectionId, Unit,
    UnitHeader, UnitOffset, constants,
};
use rustc_hash::FxHashMap;

use crate::elf::Elf;
use crate::meter::{MeteredSection, ReadMeter};
use crate::why::MissingReason;

/// What may be read in all, in bytes: so much at least, and so many times the file's DWARF.
const WORK: u64 = 256 << 20;
const WORK_TIMES: u64 = 32;
/// Functions and inlined ones that are kept of one file, some 40 bytes each.
const MAX_KEPT: usize = 8 << 20;
/// Units or functions that are looked at for one address, where many have it.
const MAX_OVERLAPS: usize = 32;
/// Functions inlined into each other that are reported.
const MAX_DEPTH: usize = 128;
/// Entries that are followed to the one that has the name.
const MAX_ORIGINS: usize = 16;

type Result<T> = gimli::Result<T>;

/// Addresses of something by its number, in order of their beginnings.
#[derive(Debug, Default)]
struct NumberedRanges {
    /// First address, the one behind the last, the highest end up to here, and whose it is.
    sorted: Vec<(u64, u64, u64, u32)>,
}

impl NumberedRanges {
    fn of(mut all: Vec<(Range<u64>, u32)>) -> NumberedRanges {
        all.sort_by_key(|(range, number)| (range.start, range.end, *number));
        let mut highest = 0;
        let sorted = all.into_iter().map(|(range, number)| {
            highest = range.end.max(highest);
            (range.start, range.end, highest, number)
        });
        NumberedRanges {
            sorted: sorted.collect(),
        }
    }

    /// Returns those that have an address, the one that begins last first.
    fn having(&self, address: u64) -> impl Iterator<Item = u32> {
        let next = self.sorted.partition_point(|(start, ..)| *start <= address);
        let before = self.sorted[..next].iter().rev();
        let reaching = before.take_while(move |(_, _, highest, _)| *highest > address);
        let reaching = reaching.take(MAX_OVERLAPS);
        let having = reaching.filter(move |(_, end, ..)| *end > address);
        having.map(|(.., number)| *number)
    }
}

/// One function with what was inlined into it.
#[derive(Debug)]
struct InlinedFunctions {
    range: Range<u64>,
    depth: u32,
    entry: UnitOffset,
}

/// One unit with its functions.
#[derive(Debug)]
struct OpenedUnit {
    unit: Unit<MeteredSection>,
    /// By function, its entry.
    entries: Vec<UnitOffset>,
    ranges: NumberedRanges,
    /// By function that was asked for, what is inlined into it.
    inlined: FxHashMap<u32, Arc<[InlinedFunctions]>>,
}

/// The DWARF of one file.
#[derive(Debug)]
pub(crate) struct DwarfFunctions {
    dwarf: Dwarf<MeteredSection>,
    meter: Arc<ReadMeter>,
    headers: Vec<UnitHeader<MeteredSection>>,
    ranges: NumberedRanges,
    /// By unit that was asked for; nothing where it is damaged.
    opened: FxHashMap<u32, Option<OpenedUnit>>,
    /// By unit and entry, the name of a function that was asked for.
    names: FxHashMap<(u32, usize), Option<MeteredSection>>,
    kept: usize,
    bytes: usize,
}

impl DwarfFunctions {
    /// Reads which addresses belong to which unit; `None` where the file has no DWARF.
    pub(crate) fn read(
        elf: &mut Elf,
    ) -> std::result::Result<Option<DwarfFunctions>, MissingReason> {
        if !elf.has(b".debug_info") {
            return Ok(None);
        }
        let endian = match elf.endian {
            object::Endianness::Little => RunTimeEndian::Little,
            object::Endianness::Big => RunTimeEndian::Big,
        };
        let wanted = [
            SectionId::DebugAbbrev,
            SectionId::DebugAddr,
            SectionId::DebugInfo,
            SectionId::DebugRanges,
            SectionId::DebugRngLists,
            SectionId::DebugStr,
            SectionId::DebugStrOffsets,
            SectionId::DebugLineStr,
        ];
        let mut bytes = 0;
        let mut sections = Vec::new();
        for id in wanted {
            let section = elf.read(id.name().as_bytes())?;
            let section = section.unwrap_or_default();
            bytes += section.len();
            sections.push((id, section));
        }
        let meter = ReadMeter::new(WORK.saturating_add(WORK_TIMES.saturating_mul(bytes as u64)));
        let none: Arc<[u8]> = Arc::default();
        let load = |id: SectionId| {
            let section = sections.iter().find(|(of, _)| *of == id);
            let section = section.map_or(&none, |(_, section)| section);
            Ok::<_, MissingReason>(MeteredSection::new(Arc::clone(section), endian, &meter))
        };
        let mut functions = DwarfFunctions {
            dwarf: Dwarf::load(load)?,
            meter,
            headers: Vec::new(),
            ranges: NumberedRanges::default(),
            opened: FxHashMap::default(),
            names: FxHashMap::default(),
            kept: 0,
            bytes,
        };
        functions.read_units();
        Ok(Some(functions))
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let kept = self.kept + self.headers.len() + self.ranges.sorted.len();
        self.bytes + kept * size_of::<InlinedFunctions>()
    }

    /// Returns a unit without what nobody asks for here: its table of lines.
    fn unit(&self, header: UnitHeader<MeteredSection>) -> Result<Unit<MeteredSection>> {
        let abbreviations = self.dwarf.abbreviations(&header)?;
        let (encoding, kind) = (header.encoding(), self.dwarf.file_type);
        let mut unit = Unit {
            abbreviations,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, kind),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, kind),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, kind),
            line_program: None,
            dwo_id: None,
            header,
        };
        let mut low = None;
        let abbreviations = Arc::clone(&unit.abbreviations);
        let mut entries = unit.header.entries_raw(&abbreviations, None)?;
        let root = entries.read_abbreviation()?;
        for attribute in root.map_or(&[][..], Abbreviation::attributes) {
            let attribute = entries.read_attribute(*attribute)?;
            match (attribute.name(), attribute.value()) {
                (constants::DW_AT_low_pc, value) => low = Some(value),
                (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
                _ => {}
            }
        }
        if let Some(low) = low {
            unit.low_pc = self.dwarf.attr_address(&unit, low)?.unwrap_or(0);
        }
        Ok(unit)
    }

    /// Reads the units up to the first damaged header.
    fn read_units(&mut self) {
        let mut all = Vec::new();
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let number = self.headers.len() as u32;
            if self.headers.len() + all.len() > MAX_KEPT || self.meter.is_empty() {
                break;
            }
            // One unit that cannot be read does not take the others with it.
            let _ = self.unit_ranges(header.clone(), number, &mut all);
            self.headers.push(header);
        }
        self.ranges = NumberedRanges::of(all);
    }

    fn unit_ranges(
        &self,
        header: UnitHeader<MeteredSection>,
        number: u32,
        all: &mut Vec<(Range<u64>, u32)>,
    ) -> Result<()> {
        let unit = self.unit(header)?;
        let mut entries = unit.entries_raw(None)?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        let mut entry = DwarfAttributes::default();
        entry.read(&mut entries, abbreviation, &self.dwarf, &unit)?;
        entry.ranges(&self.dwarf, &unit, |range| {
            all.push((range, number));
            all.len() < MAX_KEPT
        })
    }

    /// Passes on the mangled names of the functions at an address, the innermost first, each with whether it is
    /// inlined. Nothing where DWARF has no function there.
    pub(crate) fn find(&mut self, address: u64, mut name: impl FnMut(&[u8], bool)) -> bool {
        let units: Vec<u32> = self.ranges.having(address).collect();
        for number in units {
            if !self.opened.contains_key(&number) {
                let opened = self.open(number).ok();
                self.opened.insert(number, opened);
            }
            let Some(Some(unit)) = self.opened.get_mut(&number) else {
                continue;
            };
            let Some(function) = unit.ranges.having(address).next() else {
                continue;
            };
            let inlined = match unit.inlined.get(&function) {
                Some(inlined) => Arc::clone(inlined),
                None => {
                    let entry = unit.entries[function as usize];
                    let Ok(inlined) = inlined(&self.dwarf, &unit.unit, entry) else {
                        return false;
                    };
                    let inlined: Arc<[InlinedFunctions]> = inlined.into();
                    if self.kept + inlined.len() <= MAX_KEPT {
                        self.kept += inlined.len();
                        unit.inlined.insert(function, Arc::clone(&inlined));
                    }
                    inlined
                }
            };
            let function = unit.entries[function as usize];
            if self.meter.take(inlined.len()).is_err() {
                return false;
            }
            let mut here: Vec<&InlinedFunctions> = inlined
                .iter()
                .filter(|inlined| inlined.range.contains(&address))
                .collect();
            here.sort_by_key(|inlined| inlined.depth);
            here.dedup_by_key(|inlined| inlined.depth);
            for inlined in here.iter().rev() {
                if let Some(text) = self.kept_name(number, inlined.entry) {
                    name(text.bytes(), true);
                }
            }
            if let Some(text) = self.kept_name(number, function) {
                name(text.bytes(), false);
            }
            return true;
        }
        false
    }

    fn kept_name(&mut self, number: u32, entry: UnitOffset) -> Option<MeteredSection> {
        if let Some(name) = self.names.get(&(number, entry.0)) {
            return name.clone();
        }
        let opened = self.opened.get(&number)?.as_ref()?;
        let name = self.name(&opened.unit, entry);
        if self.kept < MAX_KEPT {
            self.kept += 1;
            self.names.insert((number, entry.0), name.clone());
        }
        name
    }

    fn open(&mut self, number: u32) -> Result<OpenedUnit> {
        let header = self.headers.get(number as usize);
        let header = header.ok_or(gimli::Error::MissingUnitDie)?.clone();
        let unit = self.unit(header)?;
        let mut found = Vec::new();
        let mut functions = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let at = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            if abbreviation.tag() != constants::DW_TAG_subprogram {
                skip(&mut entries, abbreviation)?;
                continue;
            }
            let mut entry = DwarfAttributes::default();
            entry.read(&mut entries, abbreviation, &self.dwarf, &unit)?;
            let before = found.len();
            let most = MAX_KEPT.saturating_sub(self.kept);
            entry.ranges(&self.dwarf, &unit, |range| {
                found.push((range, functions.len() as u32));
                found.len() < most
            })?;
            if found.len() > before {
                functions.push(at);
            }
        }
        self.kept += found.len() + functions.len();
        Ok(OpenedUnit {
            unit,
            entries: functions,
            ranges: NumberedRanges::of(found),
            inlined: FxHashMap::default(),
        })
    }

    /// Returns the name of a function: the mangled one, if there is one in any of the entries that it refers to.
    fn name(&self, unit: &Unit<MeteredSection>, entry: UnitOffset) -> Option<MeteredSection> {
        let mut other;
        let (mut unit, mut at) = (unit, entry);
        let mut plain = None;
        for _ in 0..MAX_ORIGINS {
            let mut entries = unit.entries_raw(Some(at)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let mut entry = DwarfAttributes::default();
            let read = entry.read(&mut entries, abbreviation, &self.dwarf, unit);
            read.ok()?;
            let mut text = |value| self.dwarf.attr_string(unit, value).ok();
            if let Some(name) = entry.linkage_name.and_then(&mut text) {
                return Some(name);
            }
            plain = plain.or(entry.name.and_then(&mut text));
            match entry.origin {
                Some(AttributeValue::UnitRef(offset)) => at = offset,
                Some(AttributeValue::DebugInfoRef(offset)) => {
                    let (found, offset) = self.unit_of(offset)?;
                    other = found;
                    (unit, at) = (&other, offset);
                }
                _ => break,
            }
        }
        plain
    }

    /// Returns the unit that an entry is in.
    fn unit_of(&self, offset: DebugInfoOffset) -> Option<(Unit<MeteredSection>, UnitOffset)> {
        let starts_after = |header: &UnitHeader<MeteredSection>| {
            let at = header.debug_info_offset();
            at.is_none_or(|at| at.0 > offset.0)
        };
        let next = self.headers.partition_point(|header| !starts_after(header));
        let header = self.headers.get(next.checked_sub(1)?)?;
        let within = offset.to_unit_offset(header)?;
        Some((self.unit(header.clone()).ok()?, within))
    }
}

/// Reads what is inlined into a function.
fn inlined(
    dwarf: &Dwarf<MeteredSection>,
    unit: &Unit<MeteredSection>,
    function: UnitOffset,
) -> Result<Vec<InlinedFunctions>> {
    let mut found = Vec::new();
    let mut entries = unit.entries_raw(Some(function))?;
    let top = entries.next_depth();
    if let Some(abbreviation) = entries.read_abbreviation()? {
        skip(&mut entries, abbreviation)?;
    }
    // The depths of entries that inlined functions around the present one have.
    let mut open: Vec<isize> = Vec::new();
    let mut skipped: Option<isize> = None;
    while !entries.is_empty() && entries.next_depth() > top {
        let depth = entries.next_depth();
        let at = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        if skipped.is_some_and(|outer| depth > outer) {
            skip(&mut entries, abbreviation)?;
            continue;
        }
        skipped = None;
        while open.pop_if(|outer| *outer >= depth).is_some() {}
        match abbreviation.tag() {
            // A function within another one has addresses of its own.
            constants::DW_TAG_subprogram => {
                skipped = Some(depth);
                skip(&mut entries, abbreviation)?;
            }
            constants::DW_TAG_inlined_subroutine if open.len() < MAX_DEPTH => {
                let mut entry = DwarfAttributes::default();
                entry.read(&mut entries, abbreviation, dwarf, unit)?;
                let inner = open.len() as u32;
                entry.ranges(dwarf, unit, |range| {
                    found.push(InlinedFunctions {
                        range,
                        depth: inner,
                        entry: at,
                    });
                    found.len() < MAX_KEPT
                })?;
                open.push(depth);
            }
            _ => skip(&mut entries, abbreviation)?,
        }
    }
    Ok(found)
}

fn skip(entries: &mut EntriesRaw<'_, MeteredSection>, abbreviation: &Abbreviation) -> Result<()> {
    entries.skip_attributes(abbreviation.attributes())
}

/// What is read of an entry.
#[derive(Debug, Default)]
struct DwarfAttributes {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    list: Option<AttributeValue<MeteredSection>>,
    name: Option<AttributeValue<MeteredSection>>,
    linkage_name: Option<AttributeValue<MeteredSection>>,
    origin: Option<AttributeValue<MeteredSection>>,
}

impl DwarfAttributes {
    fn read(
        &mut self,
        entries: &mut EntriesRaw<'_, MeteredSection>,
        abbreviation: &Abbreviation,
        dwarf: &Dwarf<MeteredSection>,
        unit: &Unit<MeteredSection>,
    ) -> Result<()> {
        for attribute in abbreviation.attributes() {
            let attribute = entries.read_attribute(*attribute)?;
            let value = attribute.value();
            match attribute.name() {
                constants::DW_AT_low_pc => self.low = dwarf.attr_address(unit, value)?,
                constants::DW_AT_high_pc => match value.udata_value() {
                    Some(size) => self.size = Some(size),
                    None => self.high = dwarf.attr_address(unit, value)?,
                },
                constants::DW_AT_ranges => self.list = Some(value),
                constants::DW_AT_name => self.name = Some(value),
                constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => {
                    self.linkage_name = Some(value);
                }
                constants::DW_AT_abstract_origin | constants::DW_AT_specification => {
                    self.origin = Some(value);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes on the addresses, until nobody wants more. Addresses from 0 on are those of code that the linker left
    /// out.
    fn ranges(
        self,
        dwarf: &Dwarf<MeteredSection>,
        unit: &Unit<MeteredSection>,
        mut wanted: impl FnMut(Range<u64>) -> bool,
    ) -> Result<()> {
        let Some(list) = self.list else {
            let end = match (self.low, self.high, self.size) {
                (Some(low), None, Some(size)) => low.checked_add(size),
                (_, high, _) => high,
            };
            if let (Some(low), Some(end)) = (self.low, end)
                && 0 < low
                && low < end
            {
                wanted(low..end);
            }
            return Ok(());
        };
        let Some(mut ranges) = dwarf.attr_ranges(unit, list)? else {
            return Ok(());
        };
        while let Some(range) = ranges.next()? {
            let is_code = 0 < range.begin && range.begin < range.end;
            if is_code && !wanted(range.begin..range.end) {
                break;
            }
        }
        Ok(())
    }
}
