//! Loads the sections that lookups need, and no more of them than they do.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{Section, SectionId};
use memmap2::MmapMut;
use object::{Object, ObjectSection};
use typed_arena::Arena;

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
    let file = &object::File::parse(&**mapped)?;
    let section = |id: SectionId, file: &object::File<'a>| {
        let bytes = if is_needed(id) { section_bytes(id.name(), file, &store.unpacked)? } else { &[] };
        Ok::<_, SectionError>(slice(bytes, file))
    };
    let mut abbreviations = slice(&[], file);
    let aranges = section(SectionId::DebugAranges, file)?;
    let last_unit = file.is_little_endian().then(|| units::last_needed(aranges, svmas)).flatten();
    // The largest section takes as long to decompress as all others together.
    let (info, others) = std::thread::scope(|scope| {
        let info = || Info::of(file, last_unit);
        let is_large = threads::may_start() && is_large(file);
        let thread = is_large.then(|| std::thread::Builder::new().spawn_scoped(scope, info).ok()).flatten();
        let others = gimli::Dwarf::load(|id| {
            let bytes = match id {
                SectionId::DebugInfo => slice(&[], file),
                SectionId::DebugAranges => aranges,
                id => section(id, file)?,
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
        (info, others)
    });
    let (mut dwarf, mut info) = (others?, info?);
    let lines = *dwarf.debug_line.reader();
    let unneeded = |info: &Info<'_>| {
        let is_little = file.is_little_endian();
        is_little.then(|| units::unneeded(&info.bytes, aranges, abbreviations, lines, svmas)).flatten()
    };
    let mut not_needed = unneeded(&info);
    if not_needed.is_none() && !info.is_whole {
        // A function has its name in a unit behind those that hold the addresses.
        info = Info::of(file, None)?;
        not_needed = unneeded(&info);
    }
    let (info, unneeded) = (info.bytes, not_needed);
    let info = covered(mapped, info, &unneeded.unwrap_or_default(), store);
    dwarf.debug_info = slice(info, file).into();
    if let Some(supplementary) = supplementary {
        dwarf.load_sup(|id| section(id, supplementary))?;
    }
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    Ok(dwarf)
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
