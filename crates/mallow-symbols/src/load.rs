//! Loads the sections that lookups need, and no more of them than they do.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{Section, SectionId};
use memmap2::MmapMut;
use object::{Object, ObjectSection};
use typed_arena::Arena;

use crate::beginnings::Beginnings;
use crate::info::Info;
use crate::mapped::Mapped;
use crate::reader::Slice;
use crate::sections::{SectionError, section_bytes, slice};
use crate::threads;
use crate::units;

/// What lookups hold beside the files: what is compressed is unpacked into it, and what is changed lies in it.
#[derive(Default)]
pub(crate) struct Store {
    unpacked: Arena<Vec<u8>>,
    changed: Arena<MmapMut>,
}

/// Loads the sections of a mapped file that lookups of `svmas` (sorted) need.
pub(crate) fn load<'a>(
    mapped: &'a Mapped,
    supplementary: Option<&object::File<'a>>,
    store: &'a Store,
    svmas: &[u64],
) -> Result<gimli::Dwarf<Slice<'a>>, SectionError> {
    let file = object::File::parse(&**mapped)?;
    let sections = Sections { file: &file, store };
    let aranges = sections.section(SectionId::DebugAranges)?;
    let mut last_unit = file.is_little_endian().then(|| units::last_needed(aranges, svmas)).flatten();
    let beginnings = last_unit.and_then(|last_unit| Beginnings::of(&file, last_unit));
    let beginnings = beginnings.and_then(|it| {
        let unneeded = it.unneeded(aranges, svmas);
        if unneeded.is_none() {
            // A function has its name in a unit behind those that hold the addresses.
            last_unit = None;
        }
        Some((it, unneeded?))
    });
    let Loaded { mut dwarf, info, unneeded } = match beginnings {
        Some((beginnings, unneeded)) => sections.from(beginnings, unneeded)?,
        None => sections.whole(aranges, last_unit, svmas)?,
    };
    dwarf.debug_info = slice(covered(mapped, info, &unneeded, store), &file).into();
    if let Some(file) = supplementary {
        dwarf.load_sup(|id| Sections { file, store }.section(id))?;
    }
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    Ok(dwarf)
}

/// The sections of a file.
struct Sections<'a, 'file> {
    file: &'file object::File<'a>,
    store: &'a Store,
}

struct Loaded<'a> {
    /// All but functions.
    dwarf: gimli::Dwarf<Slice<'a>>,
    info: Cow<'a, [u8]>,
    /// Units of `info`.
    unneeded: Vec<Range<usize>>,
}

impl<'a> Sections<'a, '_> {
    fn section(&self, id: SectionId) -> Result<Slice<'a>, SectionError> {
        let bytes =
            if is_needed(id) { section_bytes(id.name(), self.file, &self.store.unpacked)? } else { &[] };
        Ok(slice(bytes, self.file))
    }

    fn from(&self, beginnings: Beginnings, unneeded: Vec<Range<usize>>) -> Result<Loaded<'a>, SectionError> {
        let kept = |bytes| slice(self.store.unpacked.alloc(bytes), self.file);
        let (abbreviations, lines) = (kept(beginnings.abbreviations), kept(beginnings.lines));
        let dwarf = gimli::Dwarf::load(|id| match id {
            SectionId::DebugInfo => Ok(slice(&[], self.file)),
            SectionId::DebugAbbrev => Ok(abbreviations),
            SectionId::DebugLine => Ok(lines),
            id => self.section(id),
        })?;
        Ok(Loaded { dwarf, info: beginnings.info.into(), unneeded })
    }

    /// All sections but that of functions whole, and that one up to the unit at `last_unit`, if nothing behind is needed.
    fn whole(
        &self,
        aranges: Slice<'a>,
        last_unit: Option<usize>,
        svmas: &[u64],
    ) -> Result<Loaded<'a>, SectionError> {
        let mut abbreviations = slice(&[], self.file);
        // The largest section takes as long to decompress as all others together.
        let (info, dwarf) = std::thread::scope(|scope| {
            let info = || Info::of(self.file, last_unit);
            let is_large = threads::may_start() && is_large(self.file);
            let thread =
                is_large.then(|| std::thread::Builder::new().spawn_scoped(scope, info).ok()).flatten();
            let dwarf = gimli::Dwarf::load(|id| {
                let bytes = match id {
                    SectionId::DebugInfo => slice(&[], self.file),
                    SectionId::DebugAranges => aranges,
                    id => self.section(id)?,
                };
                if id == SectionId::DebugAbbrev {
                    abbreviations = bytes;
                }
                Ok::<_, SectionError>(bytes)
            });
            let info = match thread {
                Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => info(),
            };
            (info, dwarf)
        });
        let (dwarf, mut info) = (dwarf?, info?);
        let lines = *dwarf.debug_line.reader();
        let is_little = self.file.is_little_endian();
        let unneeded = |info: &Info<'_>| {
            is_little.then(|| units::unneeded(&info.bytes, aranges, abbreviations, lines, svmas)).flatten()
        };
        let mut not_needed = unneeded(&info);
        if not_needed.is_none() && !info.is_whole {
            // A function has its name in a unit behind those that hold the addresses.
            info = Info::of(self.file, None)?;
            not_needed = unneeded(&info);
        }
        Ok(Loaded { dwarf, info: info.bytes, unneeded: not_needed.unwrap_or_default() })
    }
}

/// Covers what is not needed of the section of functions.
fn covered<'a>(
    mapped: &'a Mapped,
    info: Cow<'a, [u8]>,
    unneeded: &[Range<usize>],
    store: &'a Store,
) -> &'a [u8] {
    let cover = |info: &mut [u8]| unneeded.iter().for_each(|units| units::cover(&mut info[units.clone()]));
    match info {
        Cow::Borrowed(bytes) if unneeded.is_empty() => bytes,
        Cow::Owned(mut bytes) => {
            cover(&mut bytes);
            store.unpacked.alloc(bytes)
        }
        Cow::Borrowed(bytes) => {
            let start = bytes.as_ptr().addr().wrapping_sub(mapped.as_ptr().addr());
            if let Some(mut changed) = mapped.changeable(start..start + bytes.len()) {
                cover(&mut changed);
                store.changed.alloc(changed)
            } else if bytes.len() <= COPIED_BYTES_MAX {
                let mut copied = bytes.to_vec();
                cover(&mut copied);
                store.unpacked.alloc(copied)
            } else {
                bytes
            }
        }
    }
}

/// A section of a file that cannot be mapped once more gets copied to be changed, up to this size.
const COPIED_BYTES_MAX: usize = 64 << 20;

/// Returns whether unpacking the section of functions is worth a thread.
fn is_large(file: &object::File<'_>) -> bool {
    const LARGE_BYTES: usize = 256 << 10;
    let section = file.section_by_name(SectionId::DebugInfo.name());
    section.and_then(|section| section.compressed_data().ok()).is_some_and(|section| {
        section.format != object::CompressionFormat::None && section.data.len() >= LARGE_BYTES
    })
}

/// Variables' locations, types and macros say nothing about functions; unpacking them would cost as much as the rest.
fn is_needed(id: SectionId) -> bool {
    !matches!(
        id,
        SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugMacinfo
            | SectionId::DebugMacro
            | SectionId::DebugNames
            | SectionId::DebugTypes
    )
}
