//! A pprof file's tables: strings, functions, mappings, locations, each without duplicates.

use crate::export::layout::{Layout, is_named};
use crate::import::NO_STACK;
use crate::pprof_proto as proto;
use mallow_base::{Frame, Language};
use mallow_profile::MappedCode;
use mallow_stacks::{Address, Location, ModuleId, StackId, Stacks};
use rustc_hash::FxHashMap;

/// The message that is being built.
pub(super) struct Tables {
    pub(super) message: proto::Profile,
    strings: FxHashMap<String, i64>,
    /// The mapping that represents each language of scripts.
    languages: FxHashMap<Language, u64>,
    functions: FxHashMap<(i64, i64), u64>,
}

impl Tables {
    /// Creates tables with the empty string, which comes first.
    pub(super) fn new() -> Tables {
        let mut tables = Tables {
            message: proto::Profile::default(),
            strings: FxHashMap::default(),
            languages: FxHashMap::default(),
            functions: FxHashMap::default(),
        };
        tables.text("");
        tables
    }

    /// Adds the modules and locations of stacks.
    pub(super) fn add_stacks(&mut self, stacks: &Stacks, mapped: &[MappedCode]) {
        let layout = Layout::of(stacks).mapped_as(stacks, mapped);
        self.add_mappings(stacks, &layout);
        self.add_locations(stacks, &layout);
    }

    pub(super) fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = self.message.string_table.len() as i64;
        self.message.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    pub(super) fn value_type(&mut self, kind: &str, unit: &str) -> proto::ValueType {
        proto::ValueType { kind: self.text(kind), unit: self.text(unit) }
    }

    /// Adds one mapping for each module; its id is the module's plus 1.
    fn add_mappings(&mut self, stacks: &Stacks, layout: &Layout) {
        let mut named = vec![false; stacks.modules.len()];
        for location in &stacks.locations {
            if let Address::InModule { module, .. } = location.address {
                named[module.0 as usize] |= is_named(location);
            }
        }
        // The kernel is not a file in which names could be looked up.
        for (named, module) in named.iter_mut().zip(&stacks.modules) {
            *named |= module.path.starts_with('[');
        }
        for (index, module) in stacks.modules.iter().enumerate() {
            let module_id = ModuleId(index as u32);
            let (memory_start, memory_limit, file_offset) = match layout.mapped(module_id) {
                Some(code) => (code.start_avma, code.end_avma, code.file_offset),
                None => {
                    let (start, end) = layout.place(module_id).unwrap_or_default();
                    (start, end, 0)
                }
            };
            let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let mapping = proto::Mapping {
                id: index as u64 + 1,
                memory_start,
                memory_limit,
                file_offset,
                filename: self.text(&module.path),
                build_id: self.text(&build_id),
                has_functions: named[index],
                has_filenames: named[index],
                has_line_numbers: named[index],
                has_inline_frames: named[index],
            };
            self.message.mapping.push(mapping);
        }
    }

    /// Adds one location for each of the profile's; its id is the location's plus 1.
    fn add_locations(&mut self, stacks: &Stacks, layout: &Layout) {
        let modules: FxHashMap<&str, u64> =
            stacks.modules.iter().zip(1..).map(|(module, id)| (module.path.as_str(), id)).collect();
        for (index, location) in stacks.locations.iter().enumerate() {
            let address = layout.address(location);
            // Without an address, the frames still have the file.
            let file = location.frames.last().and_then(|frame| frame.module.as_deref());
            let language = location.frames.last().map_or(Language::Native, |frame| frame.language);
            let mapping_id = match location.address {
                Address::InModule { module, .. } => u64::from(module.0) + 1,
                _ if language != Language::Native => self.mapping_of(language),
                _ if address.is_some() => 0,
                _ => file.and_then(|file| modules.get(file).copied()).unwrap_or(0),
            };
            let location = proto::Location {
                id: index as u64 + 1,
                mapping_id,
                // pprof has the call's address, a profile the return address.
                address: address.map_or(0, |address| address.saturating_sub(1)),
                line: self.lines_of(location),
            };
            self.message.location.push(location);
        }
    }

    /// Returns a mapping that is not a file, and says in which language its frames are written.
    fn mapping_of(&mut self, language: Language) -> u64 {
        if let Some(id) = self.languages.get(&language) {
            return *id;
        }
        let id = self.message.mapping.len() as u64 + 1;
        let mapping = proto::Mapping {
            id,
            filename: self.text(&format!("[{}]", language.word().unwrap_or_default())),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
            ..proto::Mapping::default()
        };
        self.message.mapping.push(mapping);
        self.languages.insert(language, id);
        id
    }

    fn lines_of(&mut self, location: &Location) -> Vec<proto::Line> {
        // If the binary is known, pprof may find the name in it.
        if matches!(location.address, Address::InModule { .. }) && !is_named(location) {
            return Vec::new();
        }
        let line = |frame: &Frame| proto::Line {
            function_id: self.function(&frame.function, frame.file.as_deref().unwrap_or_default()),
            line: frame.line.map_or(0, i64::from),
        };
        location.frames.iter().map(line).collect()
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.text(name), self.text(file));
        let next = self.message.function.len() as u64 + 1;
        let id = *self.functions.entry((name, filename)).or_insert(next);
        if id == next {
            self.message.function.push(proto::Function { id, name, system_name: name, filename });
        }
        id
    }

    /// Returns the location of sites without a stack: pprof ignores samples that have none.
    pub(super) fn no_stack(&mut self) -> u64 {
        let function_id = self.function(NO_STACK, "");
        let is_it = |location: &&proto::Location| {
            location.line.first().is_some_and(|line| line.function_id == function_id)
        };
        if let Some(location) = self.message.location.last().filter(is_it) {
            return location.id;
        }
        let id = self.message.location.len() as u64 + 1;
        let line = vec![proto::Line { function_id, line: 0 }];
        self.message.location.push(proto::Location { id, mapping_id: 0, address: 0, line });
        id
    }
}

/// Returns the locations of a stack, innermost first.
pub(super) fn locations(stacks: &Stacks, stack: StackId) -> Vec<u64> {
    stacks.chain(Some(stack)).map(|id| u64::from(stacks.node(id).location.0) + 1).collect()
}
