//! Frames from DWARF, for one worker at a time.
//!
//! The parsers are those of gimli and addr2line. They are made for damaged input, but they index and do arithmetic on
//! what files say: every call into them runs where a panic is caught and becomes a sentence.

use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use mallow_base::Frame;
use rustc_hash::FxHashMap;

use crate::demangle::{demangle, is_mangled};
use crate::names::Names;
use crate::reader::{self, Slice};
use crate::sections::{Failure, caught};
use crate::split::SplitDwarf;
use mallow_base::is_fuller;

/// One worker: everything it parses it keeps for its next address.
pub(crate) struct Worker<'a, 'file> {
    /// None without debug information, and after it made a parser panic.
    context: Option<Context<Slice<'a>>>,
    split: SplitDwarf<'a>,
    names: &'a Names<'file>,
    /// Functions occur in many stacks, and demangling one costs more than the rest of a warm lookup.
    demangled: FxHashMap<&'a [u8], String>,
    /// The first thing that went wrong in the debug information.
    pub(crate) damage: Option<String>,
}

impl<'a, 'file: 'a> Worker<'a, 'file> {
    pub(crate) fn new(
        dwarf: Option<Arc<gimli::Dwarf<Slice<'a>>>>,
        split: SplitDwarf<'a>,
        names: &'a Names<'file>,
    ) -> Self {
        let mut worker = Self { context: None, split, names, demangled: FxHashMap::default(), damage: None };
        if let Some(dwarf) = dwarf {
            match caught(|| Context::from_arc_dwarf(dwarf)) {
                Ok(context) => worker.context = Some(context),
                Err(failure) => worker.damage = Some(failure.into_message()),
            }
        }
        worker
    }

    /// The frames at one address, innermost first; never empty.
    pub(crate) fn resolve(&mut self, svma: u64) -> Vec<Frame> {
        let calls = match &self.context {
            None => Vec::new(),
            Some(context) => match calls_at(context, &self.split, svma) {
                Ok(calls) => calls,
                Err(Failure::Error(message)) => {
                    self.damage.get_or_insert(message);
                    Vec::new()
                }
                Err(Failure::Panic(message)) => {
                    // Its caches may be half built, so it is not used any more.
                    self.context = None;
                    self.damage.get_or_insert(message);
                    Vec::new()
                }
            },
        };
        self.frames(svma, &calls)
    }

    fn frames(&mut self, svma: u64, calls: &[Call<'a>]) -> Vec<Frame> {
        // Without DWARF there is still the physical function that holds the address.
        let (physical, inlined) = calls.split_last().unwrap_or((&Call::UNKNOWN, &[]));
        let mut frames = Vec::with_capacity(inlined.len() + 1);
        for call in inlined {
            let function = call.name.map_or_else(|| NAMELESS.to_owned(), |name| self.readable(name));
            frames.push(self.frame(function, call, true));
        }
        let function = self.physical_name(svma, physical).unwrap_or_else(|| format!("{svma:#x}"));
        frames.push(self.frame(function, physical, false));
        frames
    }

    fn frame(&self, function: String, call: &Call<'a>, inlined: bool) -> Frame {
        Frame {
            function,
            file: call.file.clone(),
            line: call.line,
            module: Some(self.names.module().to_owned()),
            inlined,
            ..Frame::default()
        }
    }

    /// Returns the name of a physical function: from DWARF, unless the symbol table has a better one. DWARF may have
    /// none (assembly, line tables only), or only `get` where the symbol is `store::Map<int>::get(int) const`.
    ///
    /// An assembler describes each label of a function as a function, so `clone3` and `__clone3` are two at one address, of which DWARF prefers
    /// none: the symbol table ranks them.
    fn physical_name(&mut self, svma: u64, call: &Call<'a>) -> Option<String> {
        let symbol = match call.name {
            Some(name) if is_mangled(name) => return Some(self.readable(name)),
            _ => self.names.at(svma),
        };
        let dwarf = call.name.filter(|_| !call.is_assembly || symbol.is_none());
        let Some(name) = dwarf else { return symbol.map(|symbol| self.readable(symbol)) };
        let bare = self.readable(name);
        // Identical functions may share one address under another one's symbol, hence the check of the bare name.
        let fuller = symbol.filter(|symbol| is_mangled(symbol)).map(|symbol| self.readable(symbol));
        Some(fuller.filter(|fuller| is_fuller(fuller, &bare)).unwrap_or(bare))
    }

    fn readable(&mut self, name: &'a [u8]) -> String {
        // A name ends where its table does, at the latest. What is longer than anything that people read is not looked at further, nor hashed.
        let name = name.get(..=NAME_BYTES_MAX).unwrap_or(name);
        let text = || match name.split_at_checked(NAME_BYTES_MAX) {
            Some((start, _)) => String::from_utf8_lossy(start).into_owned() + "…",
            None => demangle(&String::from_utf8_lossy(name)),
        };
        self.demangled.entry(name).or_insert_with(text).clone()
    }
}

/// The length up to which a name is shown.
const NAME_BYTES_MAX: usize = 32 << 10;

/// The name of an inlined call that the compiler recorded without a name.
const NAMELESS: &str = "??";

/// One call according to DWARF.
struct Call<'a> {
    name: Option<&'a [u8]>,
    file: Option<String>,
    line: Option<u32>,
    is_assembly: bool,
}

impl Call<'_> {
    const UNKNOWN: Call<'static> = Call { name: None, file: None, line: None, is_assembly: false };
}

/// All calls at an address, innermost first; empty if DWARF does not cover it.
fn calls_at<'a>(
    context: &Context<Slice<'a>>,
    split: &SplitDwarf<'a>,
    svma: u64,
) -> Result<Vec<Call<'a>>, Failure> {
    match reader::bounded(|| caught(|| parse_calls_at(context, split, svma))) {
        (Err(_), true) => Err(Failure::Error("its inlined calls are nested too deeply".to_owned())),
        (calls, _) => calls,
    }
}

fn parse_calls_at<'a>(
    context: &Context<Slice<'a>>,
    split: &SplitDwarf<'a>,
    svma: u64,
) -> Result<Vec<Call<'a>>, gimli::Error> {
    // The context looks up the range up to the next address, which the last one does not have.
    if svma == u64::MAX {
        return Ok(Vec::new());
    }
    let mut step = context.find_frames(svma);
    let mut found = loop {
        match step {
            LookupResult::Output(found) => break found?,
            LookupResult::Load { load, continuation } => step = continuation.resume(split.load(&load)),
        }
    };
    let mut calls = Vec::new();
    while let Some(call) = found.next()? {
        // Line 0 is how compilers say that code belongs to no line; the file beside it is only a left-over.
        let place = call.location.filter(|place| place.line.is_some_and(|line| line != 0));
        let language = call.function.as_ref().and_then(|function| function.language);
        calls.push(Call {
            is_assembly: language == Some(gimli::DW_LANG_Mips_Assembler),
            name: call.function.map(|function| function.name.slice()).filter(|name| !name.is_empty()),
            line: place.as_ref().and_then(|place| place.line),
            file: place.and_then(|place| place.file).map(str::to_owned),
        });
    }
    Ok(calls)
}
