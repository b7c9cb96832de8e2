//! The dynamic symbols of an object, found by its hash tables.

use core::ffi::{CStr, c_char};

/// `Elf64_Sym`.
#[repr(C)]
pub(super) struct Symbol {
    pub(super) name: u32,
    pub(super) info: u8,
    other: u8,
    section: u16,
    pub(super) value: u64,
    bytes: u64,
}

/// Kinds of symbols, a bit for each: without a kind, functions, and resolver functions (ifunc).
const FUNCTIONS: u16 = 1 | 1 << 2 | 1 << 10;

/// A definition of a symbol: its address and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// As mapped.
    pub address: usize,
    /// According to the symbol table.
    pub bytes: usize,
}

/// Returns an object's own definition of `name`, a function or data. Takes no lock: `dynamic` is the address of the
/// object's dynamic section. Not inlined, because of its stack usage.
#[inline(never)]
pub fn definition_in(bias: usize, dynamic: usize, name: &CStr) -> Option<Definition> {
    let tables = Tables { kinds: FUNCTIONS | 1 << 1, ..Tables::read(bias, dynamic as *const [u64; 2])? };
    let symbol = tables.find(name.to_bytes())?;
    Some(Definition { address: bias.wrapping_add(symbol.value as usize), bytes: symbol.bytes as usize })
}

/// The value of a tag of a dynamic section.
pub(super) fn value_of(mut entry: *const [u64; 2], wanted: u64) -> Option<u64> {
    if entry.is_null() {
        return None;
    }
    loop {
        // SAFETY: the dynamic section is mapped and ends with a zero tag.
        let [tag, value] = unsafe { *entry };
        if tag == 0 || tag == wanted {
            return (tag != 0).then_some(value);
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
}

/// An address of a dynamic section: glibc adds the bias to these values in place, musl and the vdso do not.
pub(super) fn mapped(bias: usize, value: u64) -> usize {
    if (value as usize) < bias { bias + value as usize } else { value as usize }
}

/// An object's dynamic symbols.
pub(super) struct Tables {
    /// Which kinds are searched for.
    kinds: u16,
    pub(super) symbols: *const Symbol,
    pub(super) strings: *const c_char,
    gnu_hash: *const u32,
    hash: *const u32,
    /// The version of each symbol; null when there are none.
    versions: *const u16,
}

impl Tables {
    pub(super) fn read(bias: usize, mut entry: *const [u64; 2]) -> Option<Tables> {
        const DT_HASH: u64 = 4;
        const DT_STRTAB: u64 = 5;
        const DT_SYMTAB: u64 = 6;
        const DT_GNU_HASH: u64 = 0x6fff_fef5;
        const DT_VERSYM: u64 = 0x6fff_fff0;
        if entry.is_null() {
            return None;
        }
        let mut tables = [0usize; 5];
        loop {
            // SAFETY: the dynamic section is mapped and ends with a zero tag.
            let [tag, value] = unsafe { *entry };
            let address = mapped(bias, value);
            match tag {
                0 => break,
                DT_SYMTAB => tables[0] = address,
                DT_STRTAB => tables[1] = address,
                DT_GNU_HASH => tables[2] = address,
                DT_HASH => tables[3] = address,
                DT_VERSYM => tables[4] = address,
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        let [symbols, strings, gnu_hash, hash, versions] = tables;
        (symbols != 0 && strings != 0).then_some(Tables {
            kinds: FUNCTIONS,
            symbols: symbols as *const Symbol,
            strings: strings as *const c_char,
            gnu_hash: gnu_hash as *const u32,
            hash: hash as *const u32,
            versions: versions as *const u16,
        })
    }

    /// The newest version, where there are several: `posix_spawn` has an older one that behaves otherwise.
    pub(super) fn find(&self, name: &[u8]) -> Option<&Symbol> {
        self.find_if(name, |index| !self.is_old(index)).or_else(|| self.find_if(name, |_| true))
    }

    fn find_if(&self, name: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<&Symbol> {
        if !self.gnu_hash.is_null() {
            self.find_by_gnu_hash(name, is_wanted)
        } else if !self.hash.is_null() {
            self.find_by_hash(name, is_wanted)
        } else {
            None
        }
    }

    /// Returns whether this is not the version that a program which is linked today would get.
    fn is_old(&self, index: usize) -> bool {
        const HIDDEN: u16 = 0x8000;
        // SAFETY: the table has an entry for each symbol.
        !self.versions.is_null() && unsafe { *self.versions.add(index) } & HIDDEN != 0
    }

    /// The symbol of that index when it is of that name, and this object defines it.
    fn matching(&self, index: usize, name: &[u8]) -> Option<&Symbol> {
        // SAFETY: the hash table names only symbols that exist; names are zero-terminated strings of the
        // string table.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let is_wanted = self.kinds >> (symbol.info & 0xf) & 1 != 0;
            let defined = symbol.section != 0 && symbol.value != 0 && is_wanted;
            (defined && CStr::from_ptr(self.strings.add(symbol.name as usize)).to_bytes() == name)
                .then_some(symbol)
        }
    }

    /// Layout: bucket count, first symbol, bloom words, bloom shift; bloom; buckets; hash values, the last of
    /// a chain odd.
    fn find_by_gnu_hash(&self, name: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<&Symbol> {
        let wanted = name.iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(*byte as u32));
        let table = self.gnu_hash;
        // SAFETY: reads within the table, whose own counts say where its parts lie.
        unsafe {
            let (bucket_count, first, bloom_words) = (*table, *table.add(1), *table.add(2));
            if bucket_count == 0 {
                return None;
            }
            let buckets = table.add(4 + 2 * bloom_words as usize);
            let chains = buckets.add(bucket_count as usize);
            let mut index = *buckets.add((wanted % bucket_count) as usize);
            if index < first {
                return None;
            }
            loop {
                let hash = *chains.add((index - first) as usize);
                if hash | 1 == wanted | 1
                    && is_wanted(index as usize)
                    && let Some(symbol) = self.matching(index as usize, name)
                {
                    return Some(symbol);
                }
                if hash & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// Layout: bucket count, symbol count; buckets; chain. Without the hash function: a walk over all symbols
    /// will do.
    fn find_by_hash(&self, name: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<&Symbol> {
        // SAFETY: the second word is the number of symbols.
        let count = unsafe { *self.hash.add(1) } as usize;
        (1..count).filter(|index| is_wanted(*index)).find_map(|index| self.matching(index, name))
    }
}
