//! ELF files: their build id, where they are loaded, and their sections.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use object::read::ReadCache;
use object::{
    Architecture, BinaryFormat, CompressionFormat, Endianness, Object as _, ObjectKind,
    ObjectSection as _, ObjectSegment as _, SectionFlags, SectionKind, elf,
};

use crate::read::FileSource;
use crate::why::MissingReason;

/// Sections and segments that a file may have; linkers make some forty.
const MAX_PARTS: usize = 1 << 16;

/// A segment that is loaded (`PT_LOAD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadSegment {
    /// Where it is in the file, and how long.
    pub offset: u64,
    pub size: u64,
    /// Where it is in memory, as the file says.
    pub address: u64,
    /// Whether code may run there.
    pub code: bool,
}

/// A section.
#[derive(Debug, Clone)]
pub(crate) struct ElfSection {
    pub name: Vec<u8>,
    pub address: u64,
    pub size: u64,
    /// Whether code is in it.
    pub code: bool,
    /// Where its bytes are in the file; `None` where they are in another file.
    range: Option<(u64, u64)>,
    /// How they are packed, and how many they are then.
    packed: Option<(CompressionFormat, u64)>,
}

/// An opened file.
#[derive(Debug)]
pub(crate) struct Elf {
    pub source: FileSource,
    pub endian: Endianness,
    pub is_64: bool,
    pub architecture: Architecture,
    pub build_id: Option<Vec<u8>>,
    pub loads: Vec<LoadSegment>,
    /// By number as symbols have them, from 1 on.
    pub sections: Vec<ElfSection>,
    /// Name and checksum of the file that has what was taken out of this one.
    pub debug_link: Option<(Vec<u8>, u32)>,
    /// Bytes that a section may be unpacked to.
    most: u64,
}

impl Elf {
    /// Opens a file of at most so many bytes.
    pub(crate) fn open(path: &Path, most: u64) -> Result<Elf, MissingReason> {
        Elf::open_kind(path, most, &[ObjectKind::Executable, ObjectKind::Dynamic])
    }

    /// Opens a module of the kernel, whose sections have no addresses yet.
    pub(crate) fn open_module(path: &Path, most: u64) -> Result<Elf, MissingReason> {
        Elf::open_kind(path, most, &[ObjectKind::Relocatable])
    }

    fn open_kind(path: &Path, most: u64, kinds: &[ObjectKind]) -> Result<Elf, MissingReason> {
        let source = FileSource::open(path, most)?;
        let cache = ReadCache::new(source.headers()?);
        let file = object::File::parse(&cache).map_err(|_| MissingReason::Damaged)?;
        if file.format() != BinaryFormat::Elf || !kinds.contains(&file.kind()) {
            return Err(MissingReason::Damaged);
        }
        let loads = file.segments().take(MAX_PARTS).map(|segment| {
            let (offset, size) = segment.file_range();
            LoadSegment {
                offset,
                size,
                address: segment.address(),
                code: segment.permissions().executable(),
            }
        });
        let sections = file.sections().take(MAX_PARTS).map(|section| {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                return Err(MissingReason::Damaged);
            };
            let here = section.kind() != SectionKind::UninitializedData;
            let compressed = section.compressed_file_range();
            let compressed = compressed.map_err(|_| MissingReason::Damaged)?;
            Ok(ElfSection {
                name: section
                    .name_bytes()
                    .map_err(|_| MissingReason::Damaged)?
                    .to_vec(),
                address: section.address(),
                size: section.size(),
                code: (sh_flags & elf::SHF_EXECINSTR) != Default::default(),
                range: here.then_some((compressed.offset, compressed.compressed_size)),
                packed: match compressed.format {
                    CompressionFormat::None => None,
                    format => Some((format, compressed.uncompressed_size)),
                },
            })
        });
        let build_id = file.build_id().map_err(|_| MissingReason::Damaged)?;
        let link = file.gnu_debuglink().ok().flatten();
        Ok(Elf {
            endian: file.endianness(),
            is_64: file.is_64(),
            architecture: file.architecture(),
            build_id: build_id.map(<[u8]>::to_vec).filter(|id| !id.is_empty()),
            loads: loads.collect(),
            sections: sections.collect::<Result<_, _>>()?,
            debug_link: link.map(|(name, crc)| (name.to_vec(), crc)),
            source,
            most,
        })
    }

    /// Returns whether the file says where in it code is. Debug files that objcopy made keep the segments, with no code
    /// in them; those of eu-strip keep all that is said of them.
    pub(crate) fn has_layout(&self) -> bool {
        self.loads.iter().any(|load| load.code && load.size > 0)
    }

    /// Returns number and bytes of the section that the kernel puts first when it loads a module: the first one with
    /// code that stays. `None` where sections that the kernel makes may stand before it.
    pub(crate) fn first_code(&self) -> Option<(u16, u64)> {
        let made = |section: &ElfSection| {
            section.name.starts_with(b".plt")
                || section.name.starts_with(b".text.ftrace_trampoline")
        };
        if self.architecture != Architecture::X86_64 || self.sections.iter().any(made) {
            return None;
        }
        let stays = |section: &&ElfSection| {
            section.code
                && !section.name.starts_with(b".init")
                && !section.name.starts_with(b".exit")
        };
        let mut numbered = (1..).zip(&self.sections);
        let (number, section) = numbered.find(|(_, section)| stays(section))?;
        Some((number, section.size))
    }

    /// Returns a section by its name.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&ElfSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns whether a section is here, with its bytes.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.section(name)
            .is_some_and(|section| section.range.is_some_and(|(_, size)| size > 0))
    }

    /// Reads a section; `None` where it is not in this file.
    pub(crate) fn read(&mut self, name: &[u8]) -> Result<Option<Arc<[u8]>>, MissingReason> {
        let Some(section) = self.section(name) else {
            return Ok(None);
        };
        let (Some((offset, size)), packed) = (section.range, section.packed) else {
            return Ok(None);
        };
        let Some((format, unpacked)) = packed else {
            return self.source.shared(offset, size).map(Some);
        };
        if unpacked > self.most {
            return Err(MissingReason::TooBig);
        }
        let bytes = self.source.bytes(offset, size)?;
        unpack(&bytes, format, unpacked).map(|bytes| Some(bytes.into()))
    }
}

/// Returns where in memory a place in the file is that these are the segments of.
pub(crate) fn address(loads: &[LoadSegment], offset: u64) -> Option<u64> {
    let has =
        |load: &&LoadSegment| offset.wrapping_sub(load.offset) < load.size && offset >= load.offset;
    let load = loads.iter().find(has)?;
    load.address.checked_add(offset - load.offset)
}

fn unpack(bytes: &[u8], format: CompressionFormat, size: u64) -> Result<Vec<u8>, MissingReason> {
    let mut out = Vec::new();
    let read = match format {
        CompressionFormat::Zlib => flate2::bufread::ZlibDecoder::new(bytes)
            .take(size)
            .read_to_end(&mut out),
        CompressionFormat::Zstandard => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
            let decoder = decoder.map_err(|_| MissingReason::Damaged)?;
            decoder.take(size).read_to_end(&mut out)
        }
        _ => return Err(MissingReason::Damaged),
    };
    match read {
        Ok(read) if read as u64 == size => Ok(out),
        _ => Err(MissingReason::Damaged),
    }
}
