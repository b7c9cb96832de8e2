//! The functions of a symbol table, found by address.
//!
//! It knows nothing of DWARF: it is what remains when a binary has no debug information, and what names the
//! functions that DWARF leaves nameless, such as those written in assembly.

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolFlags, SymbolKind, elf};

/// One function symbol; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<'data> {
    start: u64,
    end: u64,
    name: &'data [u8],
    rank: Rank,
}

/// Ranks several names of one address by how well people know them: smaller is better.
///
/// A sized function before a bare label, an exported name before a local one, then the one with the fewest leading
/// underscores (`write` before `__write`).
type Rank = (bool, bool, bool, usize);

/// Functions sorted by address, ready for lookups.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable<'data> {
    entries: Vec<Entry<'data>>,
    /// `reach[i]` is the greatest `end` among `entries[..=i]`: a lookup walks back over nested symbols and stops where
    /// no earlier symbol can reach the address.
    reach: Vec<u64>,
}

impl<'data> SymbolTable<'data> {
    /// The functions of `.symtab`.
    pub(crate) fn of_symtab(file: &object::File<'data>) -> Self {
        Self::from_symbols(file, file.symbols())
    }

    /// The functions of `.dynsym`: only what a library exports.
    pub(crate) fn of_dynsym(file: &object::File<'data>) -> Self {
        Self::from_symbols(file, file.dynamic_symbols())
    }

    fn from_symbols<'file, S>(file: &object::File<'data>, symbols: impl Iterator<Item = S>) -> Self
    where
        S: ObjectSymbol<'data> + 'file,
    {
        let sections = executable_sections(file);
        let entries = symbols.filter_map(|symbol| entry(&symbol, &sections)).collect();
        Self::from_entries(entries)
    }

    fn from_entries(mut entries: Vec<Entry<'data>>) -> Self {
        // The best name of an address comes last, since a lookup searches backwards.
        entries.sort_unstable_by(|a, b| {
            let best_last = b.rank.cmp(&a.rank).then_with(|| b.name.cmp(a.name));
            a.start.cmp(&b.start).then(best_last)
        });
        clip_unsized(&mut entries);
        let mut greatest = 0;
        let reach = entries
            .iter()
            .map(|entry| {
                greatest = greatest.max(entry.end);
                greatest
            })
            .collect();
        Self { entries, reach }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name of the function that covers `address`: of nested ones the innermost.
    pub(crate) fn name_at(&self, address: u64) -> Option<&'data [u8]> {
        let mut index = self.entries.partition_point(|entry| entry.start <= address);
        while index > 0 && self.reach[index - 1] > address {
            index -= 1;
            if self.entries[index].end > address {
                return Some(self.entries[index].name);
            }
        }
        None
    }
}

/// Address range of each section that holds code, by section index.
fn executable_sections(file: &object::File<'_>) -> Vec<Option<(u64, u64)>> {
    let mut ranges = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if !sh_flags.contains(elf::SHF_EXECINSTR) {
            continue;
        }
        let index = section.index().0;
        if ranges.len() <= index {
            ranges.resize(index + 1, None);
        }
        ranges[index] = Some((section.address(), section.address().saturating_add(section.size())));
    }
    ranges
}

fn entry<'data>(symbol: &impl ObjectSymbol<'data>, sections: &[Option<(u64, u64)>]) -> Option<Entry<'data>> {
    let (_, section_end) = sections.get(symbol.section_index()?.0).copied().flatten()?;
    let is_function = symbol.kind() == SymbolKind::Text;
    if !is_function && !matches!(symbol.kind(), SymbolKind::Label | SymbolKind::Unknown) {
        return None;
    }
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return None };
    let name = without_version(symbol.name_bytes().ok()?);
    // `$x` and `$d` separate code from data on some machines, `.L…` are the assembler's own: neither is a function.
    if name.is_empty() || name.starts_with(b"$") || name.starts_with(b".L") {
        return None;
    }
    let start = symbol.address();
    let size = symbol.size();
    // An unsized symbol ends, for now, where its section does: `clip_unsized` shortens it.
    let end = if size == 0 { section_end } else { start.saturating_add(size) };
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    let local = st_info.st_bind() == elf::STB_LOCAL;
    Some(Entry { start, end, name, rank: (size == 0, !is_function, local, underscores) })
}

/// `memcpy@@GLIBC_2.14` is written so by the linker; the version is not part of the name.
fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|&byte| byte == b'@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Ends each unsized symbol where the next address with a symbol begins.
fn clip_unsized(entries: &mut [Entry<'_>]) {
    let mut next_start = u64::MAX;
    let mut this_start = u64::MAX;
    for entry in entries.iter_mut().rev() {
        if entry.start != this_start {
            next_start = this_start;
            this_start = entry.start;
        }
        if entry.rank.0 {
            entry.end = entry.end.min(next_start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, SymbolTable};
    use proptest::prelude::*;

    const SECTION_END: u64 = 120;

    fn symbol(start: u64, size: u64, name: &'static [u8]) -> Entry<'static> {
        let end = if size == 0 { SECTION_END } else { start + size };
        Entry { start, end, name, rank: (size == 0, false, false, 0) }
    }

    fn name_at(symbols: &[Entry<'static>], address: u64) -> Option<&'static str> {
        let name = SymbolTable::from_entries(symbols.to_vec()).name_at(address)?;
        Some(std::str::from_utf8(name).expect("test names are text"))
    }

    #[test]
    fn a_symbol_covers_its_size_and_no_more() {
        let symbols = [symbol(10, 5, b"a"), symbol(20, 5, b"b")];
        let found: Vec<_> = [9, 10, 14, 15, 20, 24, 25].map(|at| name_at(&symbols, at)).into();
        assert_eq!(found, [None, Some("a"), Some("a"), None, Some("b"), Some("b"), None]);
    }

    #[test]
    fn an_unsized_symbol_reaches_the_next_one_or_its_section_end() {
        let symbols = [symbol(10, 0, b"start"), symbol(20, 5, b"main"), symbol(30, 0, b"end")];
        let found: Vec<_> = [19, 20, 25, 119, 120].map(|at| name_at(&symbols, at)).into();
        assert_eq!(found, [Some("start"), Some("main"), None, Some("end"), None]);
    }

    #[test]
    fn after_an_inner_symbol_the_outer_one_goes_on() {
        let symbols = [symbol(10, 50, b"outer"), symbol(20, 5, b"inner"), symbol(70, 1, b"far")];
        let found: Vec<_> = [19, 22, 25, 59, 60].map(|at| name_at(&symbols, at)).into();
        assert_eq!(found, [Some("outer"), Some("inner"), Some("outer"), Some("outer"), None]);
    }

    /// The definition, word for word: of the symbols that cover the address, the one that starts last; of equals the
    /// one of the best rank.
    fn naive<'a>(symbols: &[Entry<'a>], address: u64) -> Option<&'a [u8]> {
        symbols
            .iter()
            .filter(|symbol| {
                let next = symbols.iter().map(|other| other.start).filter(|&s| s > symbol.start).min();
                let end = if symbol.rank.0 { symbol.end.min(next.unwrap_or(u64::MAX)) } else { symbol.end };
                symbol.start <= address && address < end
            })
            .min_by_key(|symbol| (std::cmp::Reverse(symbol.start), symbol.rank, symbol.name))
            .map(|symbol| symbol.name)
    }

    proptest! {
        #[test]
        fn finds_what_a_full_scan_finds(
            symbols in proptest::collection::vec((0u64..100, 0u64..20, 0usize..6, 0usize..3), 0..40),
        ) {
            let names: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];
            let symbols: Vec<_> = symbols
                .into_iter()
                .map(|(start, size, name, underscores)| {
                    let mut entry = symbol(start, size, names[name]);
                    entry.rank.3 = underscores;
                    entry
                })
                .collect();
            let table = SymbolTable::from_entries(symbols.clone());
            for address in 0..130 {
                prop_assert_eq!(table.name_at(address), naive(&symbols, address));
            }
        }
    }
}
