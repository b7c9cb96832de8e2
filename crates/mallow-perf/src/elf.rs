//! What unwinding needs of a file: where its code is mapped, and its unwind tables.

use framehop::{ExplicitModuleSectionInfo, Module};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, FrameDescriptionEntry, LittleEndian,
    RegisterRule, UnwindContext, UnwindSection, X86_64,
};
use mallow_base::gnu_build_id;
use mallow_files::ForeignFile;
use mallow_files::roots::{Root, file_in_root};
use mallow_jvm::Exports;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SegmentFlags, elf};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// A section's bytes.
pub(crate) type Bytes = Arc<[u8]>;

/// How many bytes after the call that creates a thread its code begins at most.
const CLONE_BYTES: u64 = 16;
/// How many bytes after the entry point still belong to its function.
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
    /// Its entry point, as stated in the file; 0 if it has none.
    entry: u64,
    /// musl has no tables for the function in which its threads begin.
    is_musl: bool,
    /// A JVM library's exports for its debugger, at addresses as stated in the file.
    pub(crate) jvm: Option<Exports>,
}

/// The file of HotSpot's library.
const JVM_LIBRARY: &str = "libjvm.so";

#[derive(Debug)]
struct Segment {
    file: Range<u64>,
    svma: u64,
}

impl Binary {
    /// Reads a file.
    fn open(path: &Path) -> Option<Binary> {
        let cache = ReadCache::new(ForeignFile::open(path).ok()?);
        Binary::parse(&cache, path)
    }

    /// Reads a file as a process sees it whose root is another one.
    fn open_elsewhere(root: usize, path: &Path) -> Option<Binary> {
        let file = file_in_root(root, path)?;
        let opened = ForeignFile::open(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).ok()?;
        Binary::parse(&ReadCache::new(opened), path)
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
            build_id: build_id(&file).unwrap_or_default(),
            entry: file.entry(),
            is_musl: name.starts_with("ld-musl") || name.starts_with("libc.musl"),
            jvm: if name == JVM_LIBRARY { exports(&file) } else { None },
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

    /// Returns the unwinder's input for a mapping whose first byte is at `svma` as stated in the file.
    pub(crate) fn module(&self, mapped: Range<u64>, svma: u64) -> Module<Bytes> {
        let base_avma = mapped.start.wrapping_sub(svma).wrapping_add(self.base_svma);
        Module::new(String::new(), mapped, base_avma, self.sections.clone())
    }

    /// Returns whether a program or a thread starts here: at the entry point, or in a function whose unwind tables
    /// mark it as outermost.
    pub(crate) fn start(&self, svma: u64) -> Start {
        let is_entry =
            self.entry != 0 && (self.entry..self.entry.saturating_add(ENTRY_BYTES)).contains(&svma);
        match is_entry || self.caller(svma) == Some(Caller::None) {
            true => Start::Here,
            false if self.is_musl => Start::Perhaps,
            false => Start::No,
        }
    }

    /// Returns whether this is just after the call that creates a thread, where its code is about to start. There are
    /// no tables here, because they would be wrong for one of the two that return.
    pub(crate) fn is_behind_clone(&self, svma: u64) -> bool {
        self.caller(svma).is_none()
            && (1..=CLONE_BYTES).any(|bytes| self.caller(svma.saturating_add(bytes)) == Some(Caller::None))
    }

    /// Returns whether the caller is in a register here, as in `vfork`, because the stack is shared.
    pub(crate) fn has_caller_in_register(&self, svma: u64) -> bool {
        self.caller(svma) == Some(Caller::InDi)
    }

    /// Returns whether the kernel returns here from a signal's handler, so that what lies on the stack are the registers of what it interrupted.
    pub(crate) fn is_behind_handler(&self, svma: u64) -> bool {
        self.caller(svma) == Some(Caller::Interrupted)
    }

    /// Returns the caller according to the tables; `None` if there is no entry.
    fn caller(&self, svma: u64) -> Option<Caller> {
        let sections = &self.sections;
        let bases = BaseAddresses::default()
            .set_eh_frame(sections.eh_frame_svma.as_ref().map_or(0, |range| range.start))
            .set_eh_frame_hdr(sections.eh_frame_hdr_svma.as_ref().map_or(0, |range| range.start))
            .set_text(sections.text_svma.as_ref().map_or(0, |range| range.start))
            .set_got(sections.got_svma.as_ref().map_or(0, |range| range.start));
        if let Some(bytes) = &sections.debug_frame {
            let frames = DebugFrame::new(bytes, LittleEndian);
            let entry = frames.fde_for_address(&bases, svma, DebugFrame::cie_from_offset);
            return caller_of(&frames, &bases, entry.ok()?, svma);
        }
        let (bytes, header) = (sections.eh_frame.as_ref()?, sections.eh_frame_hdr.as_ref()?);
        let frames = EhFrame::new(bytes, LittleEndian);
        let header = EhFrameHdr::new(header, LittleEndian).parse(&bases, 8).ok()?;
        let entry = header.table()?.fde_for_address(&frames, &bases, svma, EhFrame::cie_from_offset);
        caller_of(&frames, &bases, entry.ok()?, svma)
    }
}

/// The build id; where there are no sections, of whatever notes there are.
fn build_id<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Option<Vec<u8>> {
    let found = match file.section_by_name(".note.gnu.build-id") {
        Some(section) => gnu_build_id(section.data().ok()?),
        None if file.sections().next().is_none() => file.build_id().ok().flatten(),
        None => None,
    };
    found.map(<[u8]>::to_vec)
}

fn exports<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Option<Exports> {
    let symbols = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    let named: FxHashMap<&str, u64> =
        symbols.filter_map(|symbol| Some((symbol.name().ok()?, symbol.address()))).collect();
    Exports::of(|name| named.get(name).copied())
}

type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;

fn caller_of<'a, S: UnwindSection<Slice<'a>>>(
    frames: &S,
    bases: &BaseAddresses,
    entry: FrameDescriptionEntry<Slice<'a>>,
    svma: u64,
) -> Option<Caller> {
    if entry.is_signal_trampoline() {
        return Some(Caller::Interrupted);
    }
    let mut context = UnwindContext::new();
    let row = entry.unwind_info_for_address(frames, bases, &mut context, svma).ok()?;
    let is_at_top = matches!(row.cfa(), CfaRule::RegisterAndOffset { register: X86_64::RSP, offset: 0 });
    Some(match row.register(entry.cie().return_address_register()) {
        Some(RegisterRule::Undefined) => Caller::None,
        Some(RegisterRule::Register(X86_64::RDI)) if is_at_top => Caller::InDi,
        _ => Caller::Elsewhere,
    })
}

/// Whether a program or a thread starts at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Here,
    /// Unknown.
    Perhaps,
    No,
}

/// Where a function's return address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// There is none.
    None,
    /// In a register, not on the stack.
    InDi,
    /// It was interrupted by a signal.
    Interrupted,
    Elsewhere,
}

/// Files that were opened, each once.
#[derive(Debug, Default)]
pub(crate) struct Binaries {
    known: FxHashMap<(Root, String), Option<Arc<Binary>>>,
}

impl Binaries {
    /// The file that was mapped under a path by a process with this root; none if it is none with code, or cannot be read.
    pub(crate) fn get(&mut self, root: Root, path: &str) -> Option<Arc<Binary>> {
        let key = (if path == VDSO { Root::Own } else { root }, path.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let opened = match key.0 {
            Root::Own if path == VDSO => vdso(),
            Root::Own => Binary::open(Path::new(path)),
            Root::Other(number) => Binary::open_elsewhere(number, Path::new(path)),
        };
        let opened = opened.map(Arc::new);
        self.known.insert(key, opened.clone());
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
            jvm: None,
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

    /// Returns where libc's function returns from its system call, as stated in libc's file.
    fn behind_call(libc: &[u8], function: &str) -> u64 {
        let file = object::File::parse(libc).unwrap();
        let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(function)).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let code = text.data_range(symbol.address(), 128).unwrap().unwrap();
        let call = code.windows(2).position(|bytes| bytes == [0x0f, 0x05]).unwrap();
        symbol.address() + call as u64 + 2
    }

    #[test]
    fn libc_says_where_threads_begin_and_who_called_vfork() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path =
            maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|it| it.contains("libc.so")));
        let path = path.expect("a C runtime");
        let libc = std::fs::read(path).unwrap();
        let binary = Binary::open(Path::new(path)).unwrap();
        let (vfork, clone) = (behind_call(&libc, "vfork"), behind_call(&libc, "clone"));
        assert!(binary.has_caller_in_register(vfork) && !binary.is_behind_clone(vfork));
        assert!(binary.is_behind_clone(clone) && !binary.has_caller_in_register(clone));
        let read = behind_call(&libc, "read");
        assert!(!binary.is_behind_clone(read) && !binary.has_caller_in_register(read));
        assert_eq!((binary.start(vfork), binary.start(read)), (Start::No, Start::No));
    }

    #[test]
    fn what_is_no_file_is_none() {
        let mut binaries = Binaries::default();
        for path in ["/nonexistent", "/dev/zero", "/etc/passwd", "//anon"] {
            assert!(binaries.get(Root::Own, path).is_none(), "{path}");
        }
        assert!(binaries.get(Root::Own, "/proc/self/exe").is_some());
    }
}
