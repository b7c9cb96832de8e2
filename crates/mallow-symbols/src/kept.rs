//! Answers kept from one run to the next: parsing the debug information of a C library takes longer than most programs run.
//!
//! A file in the folder holds what was found out about one module. It is good for exactly the files that it was read from (their
//! paths, sizes, times and inodes), and for exactly this build of ours, so that a debug package installed later, or another
//! demangler, gives other answers. Anything that does not fit is as if it were not there: the worst that a damaged folder costs is
//! time. Several runs may use it at once, because a file is written beside its place and renamed.
//!
//! ```text
//! "MALLOWNM" · checksum of what follows, u32 · identity · problem · strings · addresses, u32 count, sorted:
//!     (address u64 · place of its frames u32) · frames: u16 count, then of each (function u32 · file u32 · line u32 · module u32 ·
//!     inlined u8)
//! text: u32 length, UTF-8 · strings: u32 count, texts · file, line and module: 0 is none · all little-endian
//! ```

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use mallow_base::Frame;
use rustc_hash::FxHashMap;

const MAGIC: &[u8; 8] = b"MALLOWNM";
/// The maximal size of a file, and of all of them together.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FOLDER_BYTES_MAX: u64 = 512 << 20;

/// A folder of answers.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The build of mallow that wrote them.
    own: String,
}

/// The cached symbols of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) frames: FxHashMap<u64, Vec<Frame>>,
    /// What was missing or damaged when they were resolved.
    pub(crate) problem: Option<String>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Folder {
        let own = std::env::current_exe().ok().and_then(|exe| identity(&exe));
        Folder { path, own: own.unwrap_or_default() }
    }

    fn full_identity(&self, module: &str) -> String {
        format!("{}\n{module}", self.own)
    }

    fn file(&self, identity: &str) -> PathBuf {
        use std::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        identity.hash(&mut hasher);
        self.path.join(format!("{:016x}{:08x}.names", hasher.finish(), crc32fast::hash(identity.as_bytes())))
    }

    /// The answers for those of `svmas` that are known of the module with this identity.
    pub(crate) fn read(&self, module: &str, svmas: &[u64]) -> Answers {
        let identity = self.full_identity(module);
        self.open(&identity).and_then(|bytes| decode(&bytes, &identity, Some(svmas))).unwrap_or_default()
    }

    fn open(&self, identity: &str) -> Option<Vec<u8>> {
        let mut file = File::open(self.file(identity)).ok()?;
        let found = file.metadata().ok()?;
        // Names are shown to people: those that another user wrote are not.
        if !found.is_file() || found.len() > FILE_BYTES_MAX || Some(found.uid()) != own_user() {
            return None;
        }
        let mut bytes = Vec::with_capacity(found.len() as usize);
        file.read_to_end(&mut bytes).ok()?;
        // For the eviction of old files: used ones stay.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Adds those of the answers that are about `new` addresses to those that are kept. What cannot be written is found out again
    /// another time.
    pub(crate) fn add(&self, module: &str, answers: &Answers, new: &[u64]) {
        let identity = self.full_identity(module);
        let kept = self.open(&identity).and_then(|bytes| decode(&bytes, &identity, None)).unwrap_or_default();
        let of_kept = kept.frames.iter().map(|(svma, frames)| (*svma, &frames[..]));
        let of_new = new.iter().filter_map(|svma| Some((*svma, &answers.frames.get(svma)?[..])));
        let all: FxHashMap<u64, &[Frame]> = of_kept.chain(of_new).collect();
        let problem = answers.problem.as_ref().or(kept.problem.as_ref());
        let bytes = encode(&all, problem.map(String::as_str), &identity);
        if bytes.len() as u64 <= FILE_BYTES_MAX && self.write(&self.file(&identity), &bytes).is_ok() {
            self.make_room();
        }
    }

    fn write(&self, place: &Path, bytes: &[u8]) -> std::io::Result<()> {
        mallow_files::private_folder(&self.path)?;
        let fresh = place.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        let made = mallow_files::create_new(&fresh);
        let written =
            made.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&fresh, place));
        written.inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }

    /// Removes what was not used for longest, until half of the room is free.
    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let (entry, found) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))).ok()?;
                Some((found.modified().ok()?, found.len(), entry))
            })
            .collect();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if bytes <= FOLDER_BYTES_MAX {
            return;
        }
        files.sort_unstable();
        for (_, file_bytes, path) in files {
            if bytes <= FOLDER_BYTES_MAX / 2 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                bytes -= file_bytes;
            }
        }
    }
}

/// Returns which file is at a path: `None` if there is none.
pub(crate) fn identity(path: &Path) -> Option<String> {
    Some(identity_of(path, &fs::metadata(path).ok()?))
}

/// The same of a file that was found there.
pub(crate) fn identity_of(path: &Path, found: &fs::Metadata) -> String {
    format!(
        "{} {} {}.{:09} {}:{}",
        path.display(),
        found.len(),
        found.mtime(),
        found.mtime_nsec(),
        found.dev(),
        found.ino()
    )
}

fn own_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|found| found.uid())
}

/// Texts by number.
#[derive(Default)]
struct Strings {
    numbers: FxHashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let (text, number): (Arc<str>, _) = (text.into(), self.texts.len() as u32);
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// 0 is none.
    fn optional(&mut self, text: Option<&str>) -> u32 {
        text.map_or(0, |text| self.number(text) + 1)
    }
}

fn encode(answers: &FxHashMap<u64, &[Frame]>, problem: Option<&str>, identity: &str) -> Vec<u8> {
    let mut strings = Strings::default();
    let (mut index, mut frames) = (Vec::new(), Vec::new());
    let mut svmas: Vec<u64> = answers.keys().copied().collect();
    svmas.sort_unstable();
    for svma in svmas {
        index.extend_from_slice(&svma.to_le_bytes());
        index.extend_from_slice(&(frames.len() as u32).to_le_bytes());
        // More calls than that are never inlined into one another.
        let of_address = answers[&svma];
        let of_address = &of_address[..of_address.len().min(usize::from(u16::MAX))];
        frames.extend_from_slice(&(of_address.len() as u16).to_le_bytes());
        for frame in of_address {
            for number in [
                strings.number(&frame.function),
                strings.optional(frame.file.as_deref()),
                frame.line.unwrap_or(0),
                strings.optional(frame.module.as_deref()),
            ] {
                frames.extend_from_slice(&number.to_le_bytes());
            }
            frames.push(u8::from(frame.inlined));
        }
    }
    let mut body = Vec::new();
    put_text(&mut body, identity);
    body.push(u8::from(problem.is_some()));
    put_text(&mut body, problem.unwrap_or_default());
    body.extend_from_slice(&(strings.texts.len() as u32).to_le_bytes());
    strings.texts.iter().for_each(|text| put_text(&mut body, text));
    body.extend_from_slice(&(answers.len() as u32).to_le_bytes());
    body.extend(index);
    body.extend(frames);
    [MAGIC.as_slice(), &crc32fast::hash(&body).to_le_bytes(), &body].concat()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The answers for `wanted`, or all; none when the bytes are damaged or of something else.
fn decode(bytes: &[u8], identity: &str, wanted: Option<&[u64]>) -> Option<Answers> {
    const INDEX_BYTES: usize = 12;
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    let checksum = reader.u32()?;
    if checksum != crc32fast::hash(reader.0) || reader.text()? != identity {
        return None;
    }
    let (has_problem, problem) = (reader.u8()? != 0, reader.text()?);
    let count = reader.u32()?;
    let strings: Vec<&str> = (0..count).map(|_| reader.text()).collect::<Option<_>>()?;
    let count = reader.u32()? as usize;
    let index = reader.take(count.checked_mul(INDEX_BYTES)?)?;
    let entry = |at: usize| -> Option<(u64, u32)> {
        let mut entry = Reader(index.get(at * INDEX_BYTES..)?);
        Some((entry.u64()?, entry.u32()?))
    };
    let frames = reader.0;
    let mut answers = Answers { problem: has_problem.then(|| problem.to_owned()), ..Answers::default() };
    let mut add = |at: usize| {
        let (svma, place) = entry(at)?;
        answers.frames.insert(svma, frames_at(&mut Reader(frames.get(place as usize..)?), &strings)?);
        Some(())
    };
    match wanted {
        None => (0..count).try_for_each(&mut add)?,
        Some(wanted) => {
            for svma in wanted {
                let at = partition(count, |at| entry(at).is_some_and(|(known, _)| known < *svma));
                if entry(at).is_some_and(|(known, _)| known == *svma) {
                    add(at)?;
                }
            }
        }
    }
    Some(answers)
}

/// Returns how many of `0..count` precede the first for which this is false.
fn partition(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

fn frames_at(reader: &mut Reader<'_>, strings: &[&str]) -> Option<Vec<Frame>> {
    let text = |number: u32| strings.get(number as usize).map(|text| (*text).to_owned());
    let optional = |number: u32| match number {
        0 => Some(None),
        number => text(number - 1).map(Some),
    };
    let count = reader.u16()?;
    (0..count)
        .map(|_| {
            let function = text(reader.u32()?)?;
            let file = optional(reader.u32()?)?;
            let line = reader.u32()?;
            let module = optional(reader.u32()?)?;
            let inlined = reader.u8()? != 0;
            Some(Frame {
                function,
                file,
                line: (line != 0).then_some(line),
                module,
                inlined,
                ..Frame::default()
            })
        })
        .collect()
}

/// Bytes that are read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let bytes = self.u32()?;
        std::str::from_utf8(self.take(bytes as usize)?).ok()
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
