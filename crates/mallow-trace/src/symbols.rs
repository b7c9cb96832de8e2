//! What symbols said about the addresses on the stacks, so that nobody has to read the modules' files again.

use crate::varint::{DecodeError, Reader, put, put_bytes, put_str, zigzag};
use crate::{ChunkKind, Payload};
use mallow_base::{Frame, Language};
use mallow_profile::{Address, Module, ModuleId};
use rustc_hash::FxHashMap;

/// Encodes [`Address::Unknown`], in a trace imported from another tool's file: no code is at the end of the address
/// space.
const ADDRESS_UNKNOWN: u64 = u64::MAX;

/// A function call. Strings are indices into [`Symbols::strings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolFrame {
    /// The demangled name.
    pub function: u32,
    /// The source file.
    pub file: Option<u32>,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The path of the module that holds the code.
    pub module: Option<u32>,
    /// True when the call was inlined into the next frame outwards.
    pub inlined: bool,
    /// A script's language. All frames of a location have the same.
    pub language: Language,
}

/// An address and its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolLocation {
    /// The address.
    pub address: Address,
    /// Innermost first.
    pub frames: Vec<SymbolFrame>,
}

/// An address as it is in stack nodes, and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolKey {
    /// [`crate::StackNode::avma`].
    pub avma: u64,
    /// [`crate::StackNode::exact`].
    pub exact: bool,
    /// [`crate::StackNode::generation`].
    pub generation: u64,
    /// Index into [`Symbols::locations`].
    pub location: u32,
}

/// The locations of the addresses of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolProcess {
    /// The process's index.
    pub process: u32,
    /// Best in the order of addresses: they are stored as differences.
    pub keys: Vec<SymbolKey>,
}

/// Symbols. A chunk stands for itself: its indices point into its own tables. Several may follow one another.
///
/// Layout, all lists: strings · modules (string path, bytes build id) · locations (address · list of frames) · processes (index ·
/// list of keys). An address is `module + 1` and svma, or 0 and avma. A frame is function `<< 1 | inlined` · file + 1 or 0
/// · line + 1 or 0 · module + 1 or 0. A key is the signed difference of its address to the one before, `generation << 1 | exact`,
/// and its location. Behind the processes a list of the locations whose frames are a script's: location · language, which is
/// 1 for Python. A language that a reader does not know is as good as none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Names and paths.
    pub strings: Vec<String>,
    /// Modules.
    pub modules: Vec<Module>,
    /// Locations.
    pub locations: Vec<SymbolLocation>,
    /// Maps addresses to locations.
    pub processes: Vec<SymbolProcess>,
}

impl Payload for Symbols {
    const KIND: ChunkKind = ChunkKind::SYMBOLS;

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.strings.len() as u64);
        self.strings.iter().for_each(|string| put_str(out, string));
        put(out, self.modules.len() as u64);
        for module in &self.modules {
            put_str(out, &module.path);
            put_bytes(out, &module.build_id);
        }
        put(out, self.locations.len() as u64);
        self.locations.iter().for_each(|location| location.encode(out));
        put(out, self.processes.len() as u64);
        self.processes.iter().for_each(|process| process.encode(out));
        let language =
            |location: &SymbolLocation| location.frames.first().map_or(0, |frame| frame.language as u64);
        let scripts =
            || self.locations.iter().map(language).enumerate().filter(|(_, language)| *language != 0);
        put(out, scripts().count() as u64);
        for (location, language) in scripts() {
            put(out, location as u64);
            put(out, language);
        }
    }

    /// All indices lie within the tables; process indices are not checked.
    fn decode(payload: &[u8]) -> Result<Symbols, DecodeError> {
        let mut reader = Reader::new(payload);
        let strings = reader.list(1, "the strings", |reader| reader.string("a string"))?;
        let modules = reader.list(2, "the modules", |reader| {
            let path = reader.string("a module's path")?;
            Ok(Module { path, build_id: reader.bytes("a build id")?.to_vec() })
        })?;
        let mut locations = reader.list(3, "the locations", |reader| {
            SymbolLocation::decode(reader, strings.len(), modules.len())
        })?;
        let processes = reader
            .list(2, "the processes' addresses", |reader| SymbolProcess::decode(reader, locations.len()))?;
        // The first traces end here.
        if !reader.is_at_end() {
            reader.list(2, "the languages", |reader| language(reader, &mut locations))?;
        }
        Ok(Symbols { strings, modules, locations, processes })
    }
}

impl Symbols {
    /// What the frames come to when each has its names for itself.
    pub(crate) fn expanded_bytes(&self) -> u64 {
        let text = |index: u32| self.strings.get(index as usize).map_or(0, String::len) as u64;
        let frames = self.locations.iter().flat_map(|location| &location.frames);
        let of_frame = |frame: &SymbolFrame| {
            let texts = [Some(frame.function), frame.file, frame.module].into_iter().flatten().map(text);
            size_of::<Frame>() as u64 + texts.sum::<u64>()
        };
        frames.fold(0, |sum, frame| sum.saturating_add(of_frame(frame)))
    }
}

impl SymbolLocation {
    fn encode(&self, out: &mut Vec<u8>) {
        let (module, address) = match self.address {
            Address::InModule { module, svma } => (u64::from(module.0) + 1, svma),
            Address::Anonymous { avma } => (0, avma),
            Address::Unknown => (0, ADDRESS_UNKNOWN),
        };
        put(out, module);
        put(out, address);
        put(out, self.frames.len() as u64);
        for frame in &self.frames {
            put(out, u64::from(frame.function) << 1 | u64::from(frame.inlined));
            for option in [frame.file, frame.line, frame.module] {
                put(out, option.map_or(0, |value| u64::from(value) + 1));
            }
        }
    }

    fn decode(reader: &mut Reader, strings: usize, modules: usize) -> Result<SymbolLocation, DecodeError> {
        let module = option(reader, modules, "a location's module")?;
        let address = reader.varint("a location's address")?;
        let address = match module {
            Some(module) => Address::InModule { module: ModuleId(module), svma: address },
            None if address == ADDRESS_UNKNOWN => Address::Unknown,
            None => Address::Anonymous { avma: address },
        };
        let frames = reader.list(4, "a location's frames", |reader| {
            let start = *reader;
            let head = reader.varint("a function")?;
            let function = u32::try_from(head >> 1).ok().filter(|&name| (name as usize) < strings);
            Ok(SymbolFrame {
                function: function.ok_or(start.expected("a function among the strings"))?,
                file: option(reader, strings, "a file among the strings")?,
                line: option(reader, u32::MAX as usize + 1, "a line")?,
                module: option(reader, strings, "a module's path among the strings")?,
                inlined: head & 1 == 1,
                language: Language::Native,
            })
        })?;
        Ok(SymbolLocation { address, frames })
    }
}

impl SymbolProcess {
    fn encode(&self, out: &mut Vec<u8>) {
        put(out, u64::from(self.process));
        put(out, self.keys.len() as u64);
        let mut avma = 0u64;
        for key in &self.keys {
            put(out, zigzag(key.avma.wrapping_sub(avma)));
            put(out, key.generation << 1 | u64::from(key.exact));
            put(out, u64::from(key.location));
            avma = key.avma;
        }
    }

    fn decode(reader: &mut Reader, locations: usize) -> Result<SymbolProcess, DecodeError> {
        let process = reader.varint32("a process's index")?;
        let mut avma = 0u64;
        let keys = reader.list(3, "a process's addresses", |reader| {
            avma = avma.wrapping_add(reader.signed("an address")?);
            let marks = reader.varint("an address's generation")?;
            let start = *reader;
            let location = reader.varint32("a location")?;
            if location as usize >= locations {
                return Err(start.expected("a location of the table"));
            }
            Ok(SymbolKey { avma, exact: marks & 1 == 1, generation: marks >> 1, location })
        })?;
        Ok(SymbolProcess { process, keys })
    }
}

/// The strings of [`Symbols`] in the making, each once.
#[derive(Debug, Default)]
pub struct SymbolStrings {
    strings: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

impl SymbolStrings {
    /// The frame, its strings as indices.
    pub fn frame(&mut self, frame: &Frame) -> SymbolFrame {
        SymbolFrame {
            function: self.string(&frame.function),
            file: frame.file.as_ref().map(|file| self.string(file)),
            line: frame.line,
            module: frame.module.as_ref().map(|module| self.string(module)),
            inlined: frame.inlined,
            language: frame.language,
        }
    }

    /// The table for [`Symbols::strings`].
    pub fn into_table(self) -> Vec<String> {
        self.strings
    }

    fn string(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Says in which language a location's frames are.
fn language(reader: &mut Reader, locations: &mut [SymbolLocation]) -> Result<(), DecodeError> {
    let start = *reader;
    let location = reader.varint("a location of a script")?;
    let number = reader.varint("a language")?;
    let location = usize::try_from(location).ok().and_then(|location| locations.get_mut(location));
    let frames = &mut location.ok_or(start.expected("a location of the table"))?.frames;
    let language = Language::ALL.into_iter().find(|language| *language as u64 == number).unwrap_or_default();
    frames.iter_mut().for_each(|frame| frame.language = language);
    Ok(())
}

/// A number below `limit` that is stored plus 1, or 0 for none.
fn option(reader: &mut Reader, limit: usize, expected: &'static str) -> Result<Option<u32>, DecodeError> {
    let start = *reader;
    match reader.varint(expected)? {
        0 => Ok(None),
        value if value <= limit as u64 => Ok(Some((value - 1) as u32)),
        _ => Err(start.expected(expected)),
    }
}
