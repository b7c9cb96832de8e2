//! What unwinding needs of a file: where its code is mapped, and its unwind tables.

use framehop::{ExplicitModuleSectionInfo, Module};
use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, FrameDescriptionEntry, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef, SegmentFlags, elf};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A section's bytes.
pub(crate) type Bytes = Arc<[u8]>;

/// How many bytes behind the entry point still belong to the function that begins there.
const ENTRY_BYTES: u64 = 0x40;

/// A file with code in it.
#[derive(Debug)]
pub(crate) struct Binary {
    /// Segments with code.
    segments: Vec<Segment>,
    /// The lowest address as stated in the file.
    base_svma: u64,
    sections: ExplicitModuleSectionInfo<Bytes>,
    /// Its build id; empty when it has none.
    pub(crate) build_id: Vec<u8>,
    /// Where it starts, as stated in the file; 0 if it does not.
    entry: u64,
    /// musl has no tables for the function in which its threads begin.
    is_musl: bool,
}

#[derive(Debug)]
struct Segment {
    file: Range<u64>,
    svma: u64,
}

impl Binary {
    /// Reads a file.
    fn open(path: &Path) -> Option<Binary> {
        // Opening a FIFO or a device would wait or worse.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let cache = ReadCache::new(File::open(path).ok()?);
        Binary::parse(&cache, path)
    }

    fn parse<'a>(data: impl ReadRef<'a>, path: &Path) -> Option<Binary> {
        let file = object::File::parse(data).ok()?;
        let is_code =
            |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & elf::PF_X.0 != 0);
        let mut segments = Vec::new();
        let mut base_svma = u64::MAX;
        for segment in file.segments() {
            base_svma = base_svma.min(segment.address());
            // Segments of one file may share a page, so an offset alone does not say which of them is mapped; the one with code is.
            if is_code(segment.flags()) {
                let (start, size) = segment.file_range();
                segments.push(Segment { file: start..start.saturating_add(size), svma: segment.address() });
            }
        }
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address().saturating_add(section.size());
            Some((range, Bytes::from(section.uncompressed_data().ok()?)))
        };
        let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
        let debug_frame =
            if eh_frame.is_none() { section(".debug_frame").map(|(_, bytes)| bytes) } else { None };
        let range_of = |name: &str| {
            file.section_by_name(name).map(|section| section.address()..section.address() + section.size())
        };
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        Some(Binary {
            base_svma: if base_svma == u64::MAX { 0 } else { base_svma & !0xfff },
            sections: ExplicitModuleSectionInfo {
                base_svma: if base_svma == u64::MAX { 0 } else { base_svma & !0xfff },
                text_svma: range_of(".text"),
                got_svma: range_of(".got"),
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                debug_frame,
                ..ExplicitModuleSectionInfo::default()
            },
            segments,
            build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
            entry: file.entry(),
            is_musl: name.starts_with("ld-musl") || name.starts_with("libc.musl"),
        })
    }

    /// The address, as stated in the file, of the first byte of a mapping of code that begins at this place in the file.
    pub(crate) fn svma_at(&self, offset: u64, bytes: u64) -> Option<u64> {
        let pages =
            |segment: &Segment| segment.file.start & !0xfff..segment.file.end.next_multiple_of(0x1000);
        let end = offset.saturating_add(bytes.max(1));
        let touches = |segment: &&Segment| pages(segment).start < end && offset < pages(segment).end;
        let segment = self.segments.iter().find(touches)?;
        Some(segment.svma.wrapping_sub(segment.file.start).wrapping_add(offset))
    }

    /// What the unwinder needs of a mapping whose first byte is at `svma` as stated in the file.
    pub(crate) fn module(&self, mapped: Range<u64>, svma: u64) -> Module<Bytes> {
        let base_avma = mapped.start.wrapping_sub(svma).wrapping_add(self.base_svma);
        Module::new(String::new(), mapped, base_avma, self.sections.clone())
    }

    /// Whether a program or a thread starts here: at the entry point, or in a function whose tables say that nobody called it.
    pub(crate) fn is_start(&self, svma: u64) -> bool {
        let is_entry =
            self.entry != 0 && (self.entry..self.entry.saturating_add(ENTRY_BYTES)).contains(&svma);
        is_entry || self.is_musl || self.has_no_caller(svma)
    }

    /// What the tables say of the caller.
    fn has_no_caller(&self, svma: u64) -> bool {
        let sections = &self.sections;
        let bases = BaseAddresses::default()
            .set_eh_frame(sections.eh_frame_svma.as_ref().map_or(0, |range| range.start))
            .set_eh_frame_hdr(sections.eh_frame_hdr_svma.as_ref().map_or(0, |range| range.start))
            .set_text(sections.text_svma.as_ref().map_or(0, |range| range.start))
            .set_got(sections.got_svma.as_ref().map_or(0, |range| range.start));
        if let Some(bytes) = &sections.debug_frame {
            let frames = DebugFrame::new(bytes, LittleEndian);
            return is_undefined(
                &frames,
                &bases,
                frames.fde_for_address(&bases, svma, DebugFrame::cie_from_offset),
                svma,
            );
        }
        let (Some(bytes), Some(header)) = (&sections.eh_frame, &sections.eh_frame_hdr) else { return false };
        let frames = EhFrame::new(bytes, LittleEndian);
        let header = EhFrameHdr::new(header, LittleEndian).parse(&bases, 8);
        let Ok(header) = header else { return false };
        let Some(table) = header.table() else { return false };
        is_undefined(
            &frames,
            &bases,
            table.fde_for_address(&frames, &bases, svma, EhFrame::cie_from_offset),
            svma,
        )
    }
}

type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;

fn is_undefined<'a, S: UnwindSection<Slice<'a>>>(
    frames: &S,
    bases: &BaseAddresses,
    entry: gimli::Result<FrameDescriptionEntry<Slice<'a>>>,
    svma: u64,
) -> bool {
    let Ok(entry) = entry else { return false };
    let mut context = UnwindContext::new();
    let row = entry.unwind_info_for_address(frames, bases, &mut context, svma);
    row.is_ok_and(|row| {
        matches!(row.register(entry.cie().return_address_register()), Some(RegisterRule::Undefined))
    })
}

/// Files that were opened, each once.
#[derive(Debug, Default)]
pub(crate) struct Binaries {
    known: FxHashMap<String, Option<Arc<Binary>>>,
}

impl Binaries {
    /// The file that was mapped under a path; none if it is none with code, or cannot be read.
    pub(crate) fn get(&mut self, path: &str) -> Option<Arc<Binary>> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let opened = if path == VDSO { vdso() } else { Binary::open(Path::new(path)) };
        let opened = opened.map(Arc::new);
        self.known.insert(path.to_owned(), opened.clone());
        opened
    }
}

/// The kernel's own library, which has no file.
pub(crate) const VDSO: &str = "[vdso]";

/// It is the same in every process.
fn vdso() -> Option<Binary> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(VDSO))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Binary::parse(&bytes[..], Path::new(VDSO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_shares_a_page_with_what_comes_before_is_found() {
        // As lld lays it out: code begins at 0x12345 of the file and at 0x13345 of memory, and the page before it holds constants.
        let binary = Binary {
            segments: vec![Segment { file: 0x12345..0x20000, svma: 0x13345 }],
            base_svma: 0,
            sections: ExplicitModuleSectionInfo::default(),
            build_id: Vec::new(),
            entry: 0,
            is_musl: false,
        };
        assert_eq!(binary.svma_at(0x12000, 0x1000), Some(0x13000));
        assert_eq!(binary.svma_at(0x13000, 0x1000), Some(0x14000));
        assert_eq!(binary.svma_at(0x40000, 0x1000), None);
    }

    #[test]
    fn the_kernels_library_is_read_from_memory() {
        let binary = vdso().expect("the vdso");
        assert!(binary.sections.eh_frame.is_some());
        assert_eq!(binary.svma_at(0, 0x1000), Some(0));
    }

    #[test]
    fn what_is_no_file_is_none() {
        let mut binaries = Binaries::default();
        for path in ["/nonexistent", "/dev/zero", "/etc/passwd", "//anon"] {
            assert!(binaries.get(path).is_none(), "{path}");
        }
        assert!(binaries.get("/proc/self/exe").is_some());
    }
}
