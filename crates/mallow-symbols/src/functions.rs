//! All functions that a file defines, by name, for those who look for names and not for addresses.

use crate::answer::open;
use crate::binary::Binary;
use crate::search::Search;
use crate::{ModuleKey, SearchPaths, sections};
use object::{Object, ObjectSymbol, SymbolFlags, elf};
use std::path::Path;

/// A function in a symbol table. Its contents need not be true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefinedFunction {
    /// Its address as stated in the file.
    pub svma: u64,
    /// Its length; 0 where it is not known.
    pub bytes: u64,
    /// Its name, as linkers know it.
    pub name: Vec<u8>,
    /// Whether other linked files refer to it by this name, and it is not local to a file.
    pub is_global: bool,
    /// Whether a loader exports it by this name, and may resolve it to another object's definition.
    pub is_preemptible: bool,
    /// Whether it is one that chooses the function of that name, when the program starts.
    pub is_indirect: bool,
}

/// The functions that an executable or library defines and which `is_wanted`, by address and name: of its tables of symbols, and of those of its
/// separate debug file. In the order of their addresses; none if the tables name the same bytes again and again.
pub fn functions_of(
    path: &Path,
    search: &SearchPaths,
    is_wanted: impl Fn(u64, &[u8]) -> bool,
) -> Vec<DefinedFunction> {
    let key = ModuleKey { path: path.to_string_lossy().into_owned(), build_id: Vec::new() };
    let binary = open(&key, &Search::new(search));
    let found = sections::caught(|| Ok::<_, object::Error>(all_of(&binary, &is_wanted)));
    let mut found = found.unwrap_or_default();
    found.sort_unstable();
    found.dedup();
    found
}

fn all_of(binary: &Binary, is_wanted: &dyn Fn(u64, &[u8]) -> bool) -> Vec<DefinedFunction> {
    let mut functions = Vec::new();
    let mapped = [&binary.own, &binary.debug].into_iter().flatten();
    let mapped = mapped.map(|mapped| (&**mapped, mapped.stored_bytes()));
    let mini = binary.mini.iter().map(|mini| (&**mini, mini.len() as u64));
    for (bytes, stored_bytes) in mapped.chain(mini) {
        let Ok(file) = object::File::parse(bytes) else { continue };
        let mut budget = TableBudget::of(stored_bytes);
        let added = add(file.symbols(), false, is_wanted, &mut budget, &mut functions)
            .and_then(|()| add(file.dynamic_symbols(), true, is_wanted, &mut budget, &mut functions));
        if added.is_none() {
            return Vec::new();
        }
    }
    functions
}

/// Adds the functions of one table. Hidden functions are local in it: with the mark of hiding, or after all files, as
/// GNU ld places them with a file without a name in front. None if the table comes to more than may be read.
fn add<'data>(
    table: impl Iterator<Item = impl ObjectSymbol<'data>>,
    is_loaders: bool,
    is_wanted: &dyn Fn(u64, &[u8]) -> bool,
    budget: &mut TableBudget,
    functions: &mut Vec<DefinedFunction>,
) -> Option<()> {
    let mut is_behind_files = false;
    for symbol in table {
        let SymbolFlags::Elf { st_info, st_other, .. } = symbol.flags() else { continue };
        let name = budget.name_of(&symbol)?;
        match st_info.st_type() {
            elf::STT_FILE => is_behind_files = name.is_some_and(<[u8]>::is_empty),
            // In a separate debug file the sections are there, without content.
            kind @ (elf::STT_FUNC | elf::STT_GNU_IFUNC) if !symbol.is_undefined() => {
                let Some(name) = name else { continue };
                if !is_wanted(symbol.address(), name) {
                    continue;
                }
                let is_bound = st_info.st_bind() != elf::STB_LOCAL;
                let is_default = st_other.visibility() == elf::STV_DEFAULT;
                functions.push(DefinedFunction {
                    svma: symbol.address(),
                    bytes: symbol.size(),
                    name: name.to_vec(),
                    is_global: is_bound || !is_default || is_behind_files,
                    is_preemptible: is_loaders && is_bound && is_default,
                    is_indirect: kind == elf::STT_GNU_IFUNC,
                });
            }
            _ => {}
        }
    }
    Some(())
}

/// How many bytes may be read of a file's tables of symbols. Honest ones are read once; others name the same bytes again and again, or lie in a hole.
pub(crate) struct TableBudget(u64);

impl TableBudget {
    pub(crate) fn of(stored_bytes: u64) -> TableBudget {
        const ALLOWED: u64 = 64 << 20;
        const PER_STORED: u64 = 4;
        TableBudget(ALLOWED.max(stored_bytes.saturating_mul(PER_STORED)))
    }

    /// The name of a symbol, if it has one that can be a function's; none when no more may be read. To have a name is to look for its end, which may be the
    /// table's.
    pub(crate) fn name_of<'data>(
        &mut self,
        symbol: &impl ObjectSymbol<'data>,
    ) -> Option<Option<&'data [u8]>> {
        const SYMBOL_BYTES: u64 = 24;
        const NAME_BYTES_MAX: usize = 32 << 10;
        const NO_END_BYTES: usize = 1 << 20;
        let name = symbol.name_bytes();
        let read = SYMBOL_BYTES + name.map_or(NO_END_BYTES, <[u8]>::len) as u64;
        self.0 = self.0.checked_sub(read)?;
        Some(name.ok().filter(|name| name.len() <= NAME_BYTES_MAX))
    }
}
