//! From a pprof file's locations, functions and mappings to locations of a profile.

use super::messages::{Messages, expected};
use crate::ImportError;
use crate::import::jemalloc_heap::{NO_STACK, bias_of};
use crate::pprof_proto::{Function, Line, Location, Mapping};
use mallow_base::Frame;
use mallow_profile::{Address, LocationId, Module, ModuleId, ProfileBuilder, StackId};
use rustc_hash::FxHashMap;

/// A mapping that is a file.
struct Image {
    module: ModuleId,
    path: String,
    bias: u64,
}

/// Locations by their ids in the file.
pub(super) struct Places {
    locations: FxHashMap<u64, LocationId>,
    /// Stands for no stack: see [`NO_STACK`].
    no_stack: Option<u64>,
}

impl Places {
    /// Takes all locations over.
    pub(super) fn of(messages: &Messages, builder: &mut ProfileBuilder) -> Result<Places, ImportError> {
        let functions: FxHashMap<u64, &Function> =
            messages.functions.iter().map(|function| (function.id, function)).collect();
        let images: FxHashMap<u64, Image> = messages
            .mappings
            .iter()
            .filter_map(|mapping| Some((mapping.id, image_of(messages, mapping, builder)?)))
            .collect();
        let mut locations = FxHashMap::default();
        let mut no_stack = None;
        for (at, location) in &messages.locations {
            let image = images.get(&location.mapping_id);
            let frames = frames_of(messages, &functions, location, image)
                .ok_or_else(|| expected(*at, "a location whose functions are in the file"))?;
            if location.address == 0 && frames.first().is_some_and(|frame| frame.function == NO_STACK) {
                no_stack = Some(location.id);
                continue;
            }
            let address = address_of(location, image);
            locations.insert(location.id, builder.location(address, frames));
        }
        Ok(Places { locations, no_stack })
    }

    /// The stack of a sample at a byte of the file.
    pub(super) fn stack(
        &self,
        builder: &mut ProfileBuilder,
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

fn image_of(messages: &Messages, mapping: &Mapping, builder: &mut ProfileBuilder) -> Option<Image> {
    let path = messages.text(mapping.filename);
    if path.is_empty() || path.starts_with('[') {
        return None;
    }
    let build_id = bytes_of_hex(messages.text(mapping.build_id)).unwrap_or_default();
    let bias = bias_of(mapping.memory_start.saturating_sub(mapping.file_offset));
    let module = builder.module(Module { path: path.to_owned(), build_id });
    Some(Image { module, path: path.to_owned(), bias })
}

/// pprof's addresses are those of calls, ours those behind them.
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

/// None where a function is missing.
fn frames_of(
    messages: &Messages,
    functions: &FxHashMap<u64, &Function>,
    location: &Location,
    image: Option<&Image>,
) -> Option<Vec<Frame>> {
    let outermost = location.line.len().saturating_sub(1);
    let frame = |(index, line): (usize, &Line)| {
        let function = functions.get(&line.function_id)?;
        let name = messages.text(function.name);
        let name = if name.is_empty() { messages.text(function.system_name) } else { name };
        let file = messages.text(function.filename);
        Some(Frame {
            function: if name.is_empty() { "[unknown]" } else { name }.to_owned(),
            file: (!file.is_empty()).then(|| file.to_owned()),
            line: u32::try_from(line.line).ok().filter(|&line| line > 0),
            module: image.map(|image| image.path.clone()),
            inlined: index < outermost,
        })
    };
    location.line.iter().enumerate().map(frame).collect()
}

/// GNU's build ids are hexadecimal; Go's are not, and mean nothing to those who look for files.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
