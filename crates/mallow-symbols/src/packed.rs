//! Answers about a module as bytes: as they are kept, and as they come from another process. Whoever reads them takes them for a stranger's.
//!
//! ```text
//! "MALLOWN3" · checksum of what follows, u32 · identity · problem · files that were tried, u32 count:
//!     (path · is there u8 · identity · outcome) · strings · addresses, u32 count, sorted:
//!     (address u64 · place of its frames u32) · frames: u16 count, then of each (function u32 · file u32 · line u32 · module u32 ·
//!     inlined u8)
//! problem: u8, 0 for none, 1 for the text behind it, 2 stripped, 3 without symbols, then an empty text
//! text: u32 length, UTF-8 · strings: u32 count, texts · file, line and module: 0 is none · all little-endian
//! ```

use crate::ModuleKey;
use crate::answer::Answer;
use crate::problem::Problem;
use crate::search::TriedFile;
use mallow_base::{Frame, printable};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"MALLOWN3";
/// Bytes of an address and of the place of its frames.
const INDEX_BYTES: usize = 12;
/// The memory that frames may take: of any module, and for each of its addresses. Deep calls of templates have some kilobytes.
const BYTES_ALLOWED: usize = 64 << 20;
const BYTES_PER_ADDRESS: usize = 16 << 10;

/// The cached symbols of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) frames: FxHashMap<u64, Vec<Frame>>,
    /// What was missing or damaged when they were resolved.
    pub(crate) problem: Option<Problem>,
    /// The files that were tried then.
    pub(crate) tried: Vec<TriedFile>,
}

impl Answers {
    /// Returns whether the files that were tried are as they were.
    pub(crate) fn are_current(&self) -> bool {
        self.tried.iter().all(TriedFile::is_as_before)
    }

    /// Adds answers that were found out later.
    pub(crate) fn extend(&mut self, later: Answers) {
        self.frames.extend(later.frames);
        self.problem = later.problem.or(self.problem.take());
        self.tried = later.tried;
    }
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

/// Packs answers about a module.
pub(crate) fn encode(
    answers: &FxHashMap<u64, &[Frame]>,
    problem: Option<&Problem>,
    tried: &[TriedFile],
    identity: &str,
) -> Vec<u8> {
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
    let (kind, sentence) = match problem {
        None => (0, ""),
        Some(Problem::Other(sentence)) => (1, sentence.as_str()),
        Some(Problem::Stripped) => (2, ""),
        Some(Problem::Symbolless) => (3, ""),
    };
    body.push(kind);
    put_text(&mut body, sentence);
    body.extend_from_slice(&(tried.len() as u32).to_le_bytes());
    for file in tried {
        put_bytes(&mut body, file.path.as_os_str().as_bytes());
        body.push(u8::from(file.identity.is_some()));
        put_text(&mut body, file.identity.as_deref().unwrap_or_default());
        put_text(&mut body, &file.outcome);
    }
    body.extend_from_slice(&(strings.texts.len() as u32).to_le_bytes());
    strings.texts.iter().for_each(|text| put_text(&mut body, text));
    body.extend_from_slice(&(answers.len() as u32).to_le_bytes());
    body.extend(index);
    body.extend(frames);
    [MAGIC.as_slice(), &crc32fast::hash(&body).to_le_bytes(), &body].concat()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The answers for `wanted`, or all; none when the bytes are damaged or of something else, or come to more than so many addresses can have.
pub(crate) fn decode(bytes: &[u8], identity: &str, wanted: Option<&[u64]>) -> Option<Answers> {
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    let checksum = reader.u32()?;
    if checksum != crc32fast::hash(reader.0) || reader.text()? != identity {
        return None;
    }
    let problem = problem(&mut reader)?;
    let tried = tried_files(&mut reader)?;
    let count = reader.u32()?;
    let strings: Vec<&str> = (0..count).map(|_| reader.text()).collect::<Option<_>>()?;
    let count = reader.u32()? as usize;
    let index = reader.take(count.checked_mul(INDEX_BYTES)?)?;
    let of_addresses = wanted.map_or(count, <[u64]>::len).saturating_mul(BYTES_PER_ADDRESS);
    let mut table =
        Table { index, frames: reader.0, strings, left_bytes: of_addresses.saturating_add(BYTES_ALLOWED) };
    let mut answers = Answers { problem, tried, ..Answers::default() };
    let mut add = |at: usize| {
        let (svma, frames) = table.answer(at)?;
        answers.frames.insert(svma, frames);
        Some(())
    };
    match wanted {
        None => (0..count).try_for_each(&mut add)?,
        Some(wanted) => {
            let known = |at: usize| Reader(index.get(at * INDEX_BYTES..)?).u64();
            for svma in wanted {
                let at = partition(count, |at| known(at).is_some_and(|known| known < *svma));
                if known(at) == Some(*svma) {
                    add(at)?;
                }
            }
        }
    }
    Some(answers)
}

/// More files than these are never tried for one module.
const TRIED_MAX: u32 = 1 << 12;

fn problem(reader: &mut Reader<'_>) -> Option<Option<Problem>> {
    let (kind, sentence) = (reader.u8()?, reader.text()?);
    Some(match kind {
        0 => None,
        1 => Some(Problem::Other(sentence.to_owned())),
        2 => Some(Problem::Stripped),
        3 => Some(Problem::Symbolless),
        _ => return None,
    })
}

fn tried_files(reader: &mut Reader<'_>) -> Option<Vec<TriedFile>> {
    let count = reader.u32().filter(|count| *count <= TRIED_MAX)?;
    let tried = |_| {
        let path = PathBuf::from(OsStr::from_bytes(reader.bytes()?));
        let (is_there, identity) = (reader.u8()? != 0, reader.text()?);
        let identity = is_there.then(|| identity.to_owned());
        Some(TriedFile { path, identity, outcome: reader.text()?.to_owned() })
    };
    (0..count).map(tried).collect()
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

/// The addresses of packed answers, and what is at them.
struct Table<'a> {
    index: &'a [u8],
    frames: &'a [u8],
    strings: Vec<&'a str>,
    /// How much memory frames may still take: each of them has strings of its own, of which many may be one when they are packed.
    left_bytes: usize,
}

impl Table<'_> {
    fn answer(&mut self, at: usize) -> Option<(u64, Vec<Frame>)> {
        let mut entry = Reader(self.index.get(at * INDEX_BYTES..)?);
        let (svma, place) = (entry.u64()?, entry.u32()?);
        let frames = self.frames.get(place as usize..)?;
        Some((svma, self.frames_at(&mut Reader(frames))?))
    }

    fn frames_at(&mut self, reader: &mut Reader<'_>) -> Option<Vec<Frame>> {
        let count = reader.u16()?;
        let mut frames = Vec::new();
        for _ in 0..count {
            self.spend(size_of::<Frame>())?;
            let function = reader.u32()?;
            let function = self.text(function)?;
            let file = self.optional(reader.u32()?)?;
            let line = reader.u32()?;
            let module = self.optional(reader.u32()?)?;
            let inlined = reader.u8()? != 0;
            let line = (line != 0).then_some(line);
            frames.push(Frame { function, file, line, module, inlined, ..Frame::default() });
        }
        Some(frames)
    }

    fn text(&mut self, number: u32) -> Option<String> {
        let text = *self.strings.get(number as usize)?;
        self.spend(text.len())?;
        Some(text.to_owned())
    }

    fn optional(&mut self, number: u32) -> Option<Option<String>> {
        match number {
            0 => Some(None),
            number => self.text(number - 1).map(Some),
        }
    }

    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.left_bytes = self.left_bytes.checked_sub(bytes)?;
        Some(())
    }
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

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let bytes = self.u32()?;
        self.take(bytes as usize)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

impl Answer {
    /// Packs it, as the answer about these addresses, which are sorted.
    pub fn to_bytes(&self, svmas: &[u64]) -> Vec<u8> {
        let frames = svmas.iter().copied().zip(self.frames.iter().map(Vec::as_slice)).collect();
        let flags = [u8::from(self.is_lasting), u8::from(self.is_whole)];
        let packed = encode(&frames, self.problem.as_ref(), &self.tried, IN_TRANSIT);
        [&flags[..], &packed[..]].concat()
    }

    /// Reads what [`Answer::to_bytes`] wrote, or somebody who would have it taken for that. `None` if it is anything but an answer about each of
    /// these addresses of this module.
    pub fn from_bytes(bytes: &[u8], module: &ModuleKey, svmas: &[u64]) -> Option<Answer> {
        let (flags, packed) = bytes.split_at_checked(2)?;
        let mut answers = decode(packed, IN_TRANSIT, Some(svmas))?;
        let mut frames = Vec::with_capacity(svmas.len());
        for svma in svmas {
            let mut of_address = answers.frames.remove(svma).filter(|frames| !frames.is_empty())?;
            for frame in &mut of_address {
                frame.module = Some(module.path.clone());
            }
            frames.push(of_address);
        }
        let is = |flag: u8| flag == 1;
        // It is printed.
        let problem = answers.problem.map(|problem| match problem {
            Problem::Other(sentence) => Problem::Other(printable(&sentence)),
            known => known,
        });
        let mut tried = answers.tried;
        tried.iter_mut().for_each(|file| file.outcome = printable(&file.outcome));
        Some(Answer { frames, problem, tried, is_lasting: is(flags[0]), is_whole: is(flags[1]) })
    }
}

/// The identity of answers that are not kept.
const IN_TRANSIT: &str = "";

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
