//! Converts a pprof file's locations, functions and mappings to locations of a profile.

use super::messages::{Messages, expected};
use crate::import::jemalloc_heap::{NO_STACK, bias_of};
use crate::pprof_proto::{Function, Line, Location, Mapping};
use crate::rust_name;
use crate::{Format, ImportError};
use mallow_base::{Frame, Language};
use mallow_stacks::{Address, LocationId, Module, ModuleId, StackId, StacksBuilder};
use rustc_hash::FxHashMap;

/// The minimum budget of bytes for names in frames, and the budget for each byte of the file: a name is in the file
/// once, but in every frame.
const TEXT_MIN: u64 = 64 << 20;
const TEXT_PER_BYTE: u64 = 64;
/// No file has a longer path.
const PATH_BYTES_MAX: usize = 4096;

/// A mapping of a file.
struct Image {
    module: ModuleId,
    path: String,
    bias: u64,
}

/// The mapping of a location.
#[derive(Clone, Copy)]
struct Within<'a> {
    image: Option<&'a Image>,
    /// The language of a script, if its frames are not in a file.
    language: Language,
}

/// Locations by their ids in the file.
pub(super) struct Places {
    locations: FxHashMap<u64, LocationId>,
    /// The id that means no stack: see [`NO_STACK`].
    no_stack: Option<u64>,
}

impl Places {
    /// Converts all locations.
    pub(super) fn of(
        messages: &Messages,
        builder: &mut StacksBuilder,
        file_bytes: usize,
    ) -> Result<Places, ImportError> {
        let mut names = Names::of(messages, file_bytes);
        let images: FxHashMap<u64, Image> = messages
            .mappings
            .iter()
            .filter_map(|mapping| Some((mapping.id, image_of(messages, mapping, builder)?)))
            .collect();
        let language = |mapping: &Mapping| language_of(messages.text(mapping.filename));
        let languages: FxHashMap<u64, Language> =
            messages.mappings.iter().filter_map(|mapping| Some((mapping.id, language(mapping)?))).collect();
        let mut locations = FxHashMap::default();
        let mut no_stack = None;
        for (at, location) in &messages.locations {
            let image = images.get(&location.mapping_id);
            let language = languages.get(&location.mapping_id).copied().unwrap_or_default();
            let frames = names.frames(location, Within { image, language }, *at)?;
            if location.address == 0 && frames.first().is_some_and(|frame| frame.function == NO_STACK) {
                no_stack = Some(location.id);
                continue;
            }
            let address = address_of(location, image);
            locations.insert(location.id, builder.location(address, frames));
        }
        Ok(Places { locations, no_stack })
    }

    /// Returns the stack of a sample at this position in the file.
    pub(super) fn stack(
        &self,
        builder: &mut StacksBuilder,
        innermost_first: &[u64],
        at: u64,
    ) -> Result<Option<StackId>, ImportError> {
        if let [only] = innermost_first
            && Some(*only) == self.no_stack
        {
            return Ok(None);
        }
        let locations: Option<Vec<LocationId>> =
            innermost_first.iter().rev().map(|id| self.locations.get(id).copied()).collect();
        let locations = locations.ok_or_else(|| expected(at, "a sample whose locations are in the file"))?;
        Ok(builder.stack(locations))
    }
}

fn image_of(messages: &Messages, mapping: &Mapping, builder: &mut StacksBuilder) -> Option<Image> {
    let path = messages.text(mapping.filename);
    if path.is_empty() || (path.starts_with('[') && !is_code(path)) || path.len() > PATH_BYTES_MAX {
        return None;
    }
    let build_id = bytes_of_hex(messages.text(mapping.build_id)).unwrap_or_default();
    let bias = bias_of(mapping.memory_start.saturating_sub(mapping.file_offset));
    let module = builder.module(Module { path: path.to_owned(), build_id });
    Some(Image { module, path: path.to_owned(), bias })
}

/// Returns the language that a mapping represents in our own exports.
fn language_of(path: &str) -> Option<Language> {
    let word = path.strip_prefix('[')?.strip_suffix(']')?;
    Language::ALL.into_iter().find(|language| language.word() == Some(word))
}

/// Returns whether it is code that is not in a file.
fn is_code(path: &str) -> bool {
    path.starts_with("[kernel") || path == "[vdso]"
}

/// Returns the return address: pprof's addresses are those of calls.
fn address_of(location: &Location, image: Option<&Image>) -> Address {
    match (location.address, image) {
        (0, _) => Address::Unknown,
        (call, Some(image)) => {
            let svma = call.wrapping_sub(image.bias).wrapping_add(1);
            Address::InModule { module: image.module, svma }
        }
        (call, None) => Address::Anonymous { avma: call.wrapping_add(1) },
    }
}

/// The remaining budget of names.
struct Names<'a> {
    messages: &'a Messages,
    functions: FxHashMap<u64, &'a Function>,
    bytes_max: u64,
    bytes_left: u64,
}

impl<'a> Names<'a> {
    fn of(messages: &'a Messages, file_bytes: usize) -> Names<'a> {
        let bytes_max = TEXT_MIN.max((file_bytes as u64).saturating_mul(TEXT_PER_BYTE));
        let functions = messages.functions.iter().map(|function| (function.id, function)).collect();
        Names { messages, functions, bytes_max, bytes_left: bytes_max }
    }

    /// Returns the frames of the location at this position in the file.
    fn frames(
        &mut self,
        location: &Location,
        within: Within<'_>,
        at: u64,
    ) -> Result<Vec<Frame>, ImportError> {
        let outermost = location.line.len().saturating_sub(1);
        if location.line.is_empty() {
            // The address will represent the name, in the same file.
            self.take(within.image.map_or(0, |image| image.path.len()))?;
        }
        let mut frames = Vec::with_capacity(location.line.len());
        for (index, line) in location.line.iter().enumerate() {
            let frame = self.frame(line, within, index < outermost);
            frames.push(frame.ok_or_else(|| expected(at, "a location whose functions are in the file"))??);
        }
        Ok(frames)
    }

    /// Returns `None` if the function is missing.
    fn frame(
        &mut self,
        line: &Line,
        within: Within<'_>,
        inlined: bool,
    ) -> Option<Result<Frame, ImportError>> {
        let Within { image, language } = within;
        let function = self.functions.get(&line.function_id)?;
        let name = self.messages.text(function.name);
        let name = if name.is_empty() { self.messages.text(function.system_name) } else { name };
        let name = rust_name::made_readable(name);
        let file = self.messages.text(function.filename);
        let length = name.len() + file.len() + image.map_or(0, |image| image.path.len());
        if let Err(error) = self.take(length) {
            return Some(Err(error));
        }
        Some(Ok(Frame {
            function: if name.is_empty() { String::from("[unknown]") } else { name },
            file: (!file.is_empty()).then(|| file.to_owned()),
            line: u32::try_from(line.line).ok().filter(|&line| line > 0),
            module: image.map(|image| image.path.clone()),
            inlined,
            language,
        }))
    }

    fn take(&mut self, bytes: usize) -> Result<(), ImportError> {
        let bytes_max = self.bytes_max;
        self.bytes_left =
            self.bytes_left.checked_sub(bytes as u64).ok_or_else(|| ImportError::Unsupported {
                format: Format::Pprof,
                reason: format!(
                    "its names come to more than {bytes_max} bytes in frames, far more than its size allows"
                ),
            })?;
        Ok(())
    }
}

/// Parses hexadecimal, which GNU's build ids are. Go's build ids are not, and are useless for finding files.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
