//! glibc's `malloc_info`, as `glibc/malloc/malloc.c` writes it.
//!
//! ```text
//! <malloc version="1">
//! <heap nr="0">                                           an arena
//! <sizes>
//!   <size from="33" to="48" total="96" count="2"/>        free chunks
//!   <unsorted from="657" to="657" total="657" count="1"/>
//! </sizes>
//! <total type="fast" count="0" size="0"/>                 free in all
//! <total type="rest" count="2" size="3249"/>
//! <system type="current" size="5013504"/>                 taken from the kernel
//! <system type="max" size="5013504"/>
//! <aspace type="total" size="5013504"/>                   address space
//! </heap>
//! <total type="fast" …/> … <total type="mmap" count="0" size="0"/>
//! </malloc>
//! ```
//!
//! Chunks in threads' caches count as used. The totals after the arenas are those of all arenas.

use super::parts::damaged;
use super::{Allocator, AllocatorMetrics, AllocatorState, Arena};
use crate::{Format, ImportError, Position};
use mallow_profile::Bin;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

pub(super) fn read(bytes: &[u8]) -> Result<AllocatorState, ImportError> {
    let mut reader = Reader::from_reader(bytes);
    let mut info = Info::default();
    loop {
        let at = reader.buffer_position();
        let is_element = |error: &str| damaged(Format::MallocInfo, Position::Byte(at), error);
        match reader.read_event() {
            Ok(Event::Start(element) | Event::Empty(element)) => info.take(&element, at)?,
            Ok(Event::End(element)) => match element.name().as_ref() {
                b"heap" => info.in_arena = false,
                b"malloc" => info.is_whole = true,
                _ => {}
            },
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => return Err(is_element("an element of XML")),
        }
        if info.is_whole {
            break;
        }
    }
    if info.whole.current.is_none() && info.arenas.is_empty() {
        return Err(damaged(Format::MallocInfo, Position::Byte(0), "an arena, or the totals of all"));
    }
    Ok(info.state())
}

/// The metrics of an arena, or of all.
#[derive(Clone, Debug, Default)]
struct Sums {
    fast: u64,
    rest: u64,
    mmap: Option<u64>,
    current: Option<u64>,
    max: Option<u64>,
    address_space: Option<u64>,
}

#[derive(Debug, Default)]
struct Info {
    arenas: Vec<(String, Sums)>,
    in_arena: bool,
    is_whole: bool,
    whole: Sums,
    /// Free chunks by their smallest and largest size.
    chunks: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Info {
    fn take(&mut self, element: &BytesStart<'_>, at: u64) -> Result<(), ImportError> {
        let number = |name: &str| {
            let expected = || damaged(Format::MallocInfo, Position::Byte(at), &format!("a number as {name}"));
            attribute(element, name).and_then(|value| value.parse::<u64>().ok()).ok_or_else(expected)
        };
        let kind = attribute(element, "type").unwrap_or_default();
        match element.name().as_ref() {
            b"heap" => {
                self.arenas.push((attribute(element, "nr").unwrap_or_default(), Sums::default()));
                self.in_arena = true;
            }
            b"size" | b"unsorted" => {
                let (count, bytes) = self.chunks.entry((number("from")?, number("to")?)).or_default();
                *count = count.saturating_add(number("count")?);
                *bytes = bytes.saturating_add(number("total")?);
            }
            name @ (b"total" | b"system" | b"aspace") => {
                let size = number("size")?;
                let sums = match self.arenas.last_mut() {
                    Some((_, sums)) if self.in_arena => sums,
                    _ => &mut self.whole,
                };
                match (name, kind.as_str()) {
                    (b"total", "fast") => sums.fast = size,
                    (b"total", "rest") => sums.rest = size,
                    (b"total", "mmap") => sums.mmap = Some(size),
                    (b"system", "current") => sums.current = Some(size),
                    (b"system", "max") => sums.max = Some(size),
                    (b"aspace", "total") => sums.address_space = Some(size),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn state(self) -> AllocatorState {
        let mut warnings = Vec::new();
        if !self.is_whole {
            warnings.push(String::from("the file ends before </malloc>; what is missing is not shown"));
        }
        let arena = |(name, sums): &(String, Sums)| Arena {
            name: name.clone(),
            threads: None,
            metrics: sums.metrics(),
        };
        let bin = |((size_min, size_max), (free_blocks, waste_bytes))| Bin {
            size_min,
            size_max,
            blocks: None,
            slabs: None,
            free_blocks,
            waste_bytes,
        };
        AllocatorState {
            allocator: Allocator::Glibc,
            version: String::new(),
            totals: self.whole.metrics(),
            arenas: self.arenas.iter().map(arena).collect(),
            bins: self.chunks.into_iter().map(bin).collect(),
            warnings,
        }
    }
}

impl Sums {
    fn metrics(&self) -> AllocatorMetrics {
        let free = self.fast.saturating_add(self.rest);
        let own_mappings = self.mmap.unwrap_or(0);
        AllocatorMetrics {
            allocated: self.current.map(|current| current.saturating_sub(free).saturating_add(own_mappings)),
            mapped: self.current.map(|current| current.saturating_add(own_mappings)),
            free: self.current.map(|_| free),
            own_mappings: self.mmap,
            mapped_max: self.max,
            retained: self
                .address_space
                .zip(self.current)
                .map(|(space, current)| space.saturating_sub(current)),
            ..AllocatorMetrics::default()
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    Some(String::from_utf8_lossy(&attribute.value).into_owned())
}
