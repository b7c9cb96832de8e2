//! All functions that a file defines, by name, for those who look for names and not for addresses.

use crate::binary::Binary;
use crate::{ModuleKey, SearchPaths, open, sections};
use object::{Object, ObjectSymbol, SymbolFlags, elf};
use std::path::Path;

/// A function as a table of symbols has it. What it says need not be true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefinedFunction {
    /// Its address as stated in the file.
    pub svma: u64,
    /// Its length; 0 where it is not known.
    pub bytes: u64,
    /// Its name, as linkers know it.
    pub name: Vec<u8>,
    /// Whether other files may use it by this name.
    pub is_global: bool,
}

/// The functions that an executable or library defines and which `is_wanted`, by address and name: of its tables of symbols, and of those of its
/// separate debug file. In the order of their addresses.
pub fn functions_of(
    path: &Path,
    search: &SearchPaths,
    is_wanted: impl Fn(u64, &[u8]) -> bool,
) -> Vec<DefinedFunction> {
    let key = ModuleKey { path: path.to_string_lossy().into_owned(), build_id: Vec::new() };
    let binary = open(&key, search);
    let found = sections::caught(|| Ok::<_, object::Error>(all_of(&binary, &is_wanted)));
    let mut found = found.unwrap_or_default();
    found.sort_unstable();
    found.dedup();
    found
}

fn all_of(binary: &Binary, is_wanted: &dyn Fn(u64, &[u8]) -> bool) -> Vec<DefinedFunction> {
    let mut functions = Vec::new();
    for mapped in [&binary.own, &binary.debug].into_iter().flatten() {
        let Ok(file) = object::File::parse(&**mapped) else { continue };
        functions.extend(file.symbols().filter_map(|symbol| function(&symbol, is_wanted)));
        functions.extend(file.dynamic_symbols().filter_map(|symbol| function(&symbol, is_wanted)));
    }
    functions
}

fn function<'data>(
    symbol: &impl ObjectSymbol<'data>,
    is_wanted: &dyn Fn(u64, &[u8]) -> bool,
) -> Option<DefinedFunction> {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return None };
    // In a separate debug file the sections are there, without content.
    if symbol.is_undefined() || st_info.st_type() != elf::STT_FUNC {
        return None;
    }
    let name = symbol.name_bytes().ok().filter(|name| is_wanted(symbol.address(), name))?;
    Some(DefinedFunction {
        svma: symbol.address(),
        bytes: symbol.size(),
        name: name.to_vec(),
        is_global: st_info.st_bind() != elf::STB_LOCAL,
    })
}
