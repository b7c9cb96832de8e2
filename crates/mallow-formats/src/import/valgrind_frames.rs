//! Frames as Valgrind's tools and the crate dhat write them, such as `0x1091E8: grow (rows.c:20)`.
//!
//! Calls that were inlined into one another follow each other with the same address: together they are one location.
//! The text of the frames must never exceed the file's size times a small number.

use crate::rust_name;
use mallow_base::Frame;
use mallow_profile::{Address, LocationId, ProfileBuilder, StackId};
use rustc_hash::FxHashMap;

/// The maximum number of bytes that frames may expand to, per byte of the file. Ordinary files stay below 1.
const UNFOLDED_PER_BYTE_MAX: u64 = 16;
/// The minimum of that limit.
const UNFOLDED_MIN: u64 = 1 << 20;
/// What a frame costs in addition to its text.
const FRAME_BYTES: u64 = 128;

/// The frames of a file by their number, and their locations.
pub(super) struct Frames {
    table: Vec<Parsed>,
    /// How many of the table are the file's own.
    in_file: usize,
    /// The places in the table of frames that the file lacks, by their numbers.
    nameless: FxHashMap<u32, u32>,
    locations: FxHashMap<Box<[u32]>, LocationId>,
    /// The budget for further locations of several frames.
    bytes_left: u64,
}

/// The file has far more inlined frames than its size allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overgrown;

struct Parsed {
    /// `None` if the file has none or 0.
    address: Option<u64>,
    frame: Frame,
    is_allocator: bool,
}

impl Frames {
    /// Returns the frames of a file of this size, numbered from 0.
    pub(super) fn new(texts: &[impl AsRef<str>], file_bytes: u64) -> Frames {
        let bytes_left = file_bytes.saturating_mul(UNFOLDED_PER_BYTE_MAX).max(UNFOLDED_MIN);
        let table: Vec<Parsed> = texts.iter().map(|text| parse(text.as_ref())).collect();
        let in_file = table.len();
        Frames { table, in_file, nameless: FxHashMap::default(), locations: FxHashMap::default(), bytes_left }
    }

    /// Returns the number of frames in the file.
    pub(super) fn len(&self) -> usize {
        self.in_file
    }

    /// Returns how many frames were made up because the file lacks them.
    pub(super) fn nameless(&self) -> usize {
        self.nameless.len()
    }

    /// Returns a number that exists: that of the file's frame, or else of one that is named by its number, `[frame 12]`.
    pub(super) fn known_or_nameless(&mut self, number: u32) -> u32 {
        if (number as usize) < self.in_file {
            return number;
        }
        let next = self.table.len() as u32;
        let table = &mut self.table;
        *self.nameless.entry(number).or_insert_with(|| {
            let function = format!("[frame {number}]");
            table.push(Parsed {
                address: None,
                frame: Frame { function, ..Frame::default() },
                is_allocator: false,
            });
            next
        })
    }

    /// Returns the stack of these frames, innermost first, without the allocating function itself. The numbers must exist.
    pub(super) fn stack(
        &mut self,
        builder: &mut ProfileBuilder,
        innermost_first: &[u32],
    ) -> Result<Option<StackId>, Overgrown> {
        let parsed = |number: &u32| &self.table[*number as usize];
        let own = innermost_first.iter().take_while(|number| parsed(number).is_allocator).count();
        let mut locations = Vec::new();
        let mut rest = &innermost_first[own..];
        while !rest.is_empty() {
            let (group, next) = rest.split_at(self.group_length(rest));
            locations.push(self.location(builder, group)?);
            rest = next;
        }
        Ok(builder.stack(locations.into_iter().rev()))
    }

    /// Returns how many of the frames are calls at one address. A repeated frame is a recursion.
    fn group_length(&self, frames: &[u32]) -> usize {
        let address = self.table[frames[0] as usize].address;
        let is_inside = |&index: &usize| {
            address.is_some()
                && self.table[frames[index] as usize].address == address
                && !frames[..index].contains(&frames[index])
        };
        1 + (1..frames.len()).take_while(is_inside).count()
    }

    fn location(&mut self, builder: &mut ProfileBuilder, group: &[u32]) -> Result<LocationId, Overgrown> {
        if let Some(known) = self.locations.get(group) {
            return Ok(*known);
        }
        if group.len() > 1 {
            let cost = group.iter().map(|number| self.table[*number as usize].cost()).sum();
            self.bytes_left = self.bytes_left.checked_sub(cost).ok_or(Overgrown)?;
        }
        let frame = |(index, number): (usize, &u32)| Frame {
            inlined: index + 1 < group.len(),
            ..self.table[*number as usize].frame.clone()
        };
        let frames = group.iter().enumerate().map(frame).collect();
        let address = self.table[group[0] as usize].address;
        let address = address.map_or(Address::Unknown, |avma| Address::Anonymous { avma });
        let location = builder.location(address, frames);
        self.locations.insert(group.into(), location);
        Ok(location)
    }
}

impl Parsed {
    fn cost(&self) -> u64 {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let text = self.frame.function.len() + length(&self.frame.file) + length(&self.frame.module);
        FRAME_BYTES + text as u64
    }
}

fn parse(text: &str) -> Parsed {
    let (address, text) = split_address(text);
    let (name, place) = split_place(text);
    let mut frame = Frame::default();
    match place {
        Some(Place::Module(module)) => frame.module = known(module),
        Some(Place::Line(file, line)) => {
            frame.file = known(file);
            frame.line = frame.file.as_ref().and(line);
        }
        None => {}
    }
    frame.function = match (known(name), address) {
        (Some(name), _) => rust_name::made_readable(&name),
        (None, Some(address)) => format!("{address:#x}"),
        (None, None) => String::from("[unknown]"),
    };
    let is_allocator = is_allocator(&frame);
    Parsed { address, frame, is_allocator }
}

/// Returns whether it is Valgrind's replacement of `malloc` or a similar function, or the crate's allocator: not the caller but the called function.
fn is_allocator(frame: &Frame) -> bool {
    let file_name = |path: &Option<String>| {
        path.as_deref().map_or("", |path| path.rsplit('/').next().unwrap_or_default()).to_owned()
    };
    file_name(&frame.module).starts_with("vgpreload_")
        || file_name(&frame.file) == "vg_replace_malloc.c"
        || frame.function.starts_with("<dhat::Alloc as core::alloc::global::GlobalAlloc>::")
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty() && text != "???").then(|| text.to_owned())
}

/// Parses `0x12: rest`.
fn split_address(text: &str) -> (Option<u64>, &str) {
    let split = text.strip_prefix("0x").and_then(|text| text.split_once(':'));
    match split.map(|(digits, rest)| (u64::from_str_radix(digits, 16), rest)) {
        Some((Ok(address), rest)) => ((address != 0).then_some(address), rest.trim_start()),
        _ => (None, text),
    }
}

enum Place<'a> {
    Module(&'a str),
    /// Line 0 means no line.
    Line(&'a str, Option<u32>),
}

/// Parses `name (file:line)`, `name (file:line:column)`, `name (in module)`, or a name that may itself end in brackets.
fn split_place(text: &str) -> (&str, Option<Place<'_>>) {
    let Some(inside) = last_bracket(text) else { return (text.trim(), None) };
    let name = text[..text.len() - inside.len() - 2].trim();
    if let Some(module) = inside.strip_prefix("in ") {
        return (name, Some(Place::Module(module)));
    }
    let number = |text: &str| text.parse::<u32>().ok();
    let Some((file, last)) = inside.rsplit_once(':') else { return (text.trim(), None) };
    let Some(last) = number(last) else { return (text.trim(), None) };
    let (file, line) = match file.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?))) {
        Some((file, line)) => (file, line),
        None => (file, last),
    };
    (name, Some(Place::Line(file, (line != 0).then_some(line))))
}

/// Returns the text in the brackets at the end, if a blank precedes them.
fn last_bracket(text: &str) -> Option<&str> {
    let before = text.strip_suffix(')')?;
    let mut depth = 1u32;
    for (index, byte) in before.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let follows_blank = index > 0 && before.as_bytes()[index - 1] == b' ';
            return follows_blank.then(|| &before[index + 1..]);
        }
    }
    None
}

#[cfg(test)]
#[path = "valgrind_frames_tests.rs"]
mod tests;
