//! The symbol table of one module, whichever of its files has the best one.
//!
//! The table is read when the first name is asked for: with full DWARF most modules never need it.

use std::sync::OnceLock;

use crate::dwarf::caught;
use crate::symtab::SymbolTable;

/// Names of physical functions by address.
pub(crate) struct Names<'a> {
    module: &'a str,
    own: Option<object::File<'a>>,
    debug: Option<object::File<'a>>,
    table: OnceLock<SymbolTable<'a>>,
}

impl<'a> Names<'a> {
    /// Names of `module` from its own file and its separate debug file.
    pub(crate) fn new(
        module: &'a str,
        own: Option<object::File<'a>>,
        debug: Option<object::File<'a>>,
    ) -> Self {
        Self { module, own, debug, table: OnceLock::new() }
    }

    /// The path under which the module was mapped.
    pub(crate) fn module(&self) -> &'a str {
        self.module
    }

    /// The mangled name of the function at an address.
    pub(crate) fn at(&self, svma: u64) -> Option<&'a [u8]> {
        self.table().name_at(svma)
    }

    /// True if no table names any function.
    pub(crate) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// True if there is a table of all functions, not only of exported ones.
    pub(crate) fn is_complete(&self) -> bool {
        self.files().any(|file| !SymbolTable::of_symtab(file).is_empty())
    }

    fn files(&self) -> impl Iterator<Item = &object::File<'a>> {
        [&self.own, &self.debug].into_iter().flatten()
    }

    fn table(&self) -> &SymbolTable<'a> {
        self.table.get_or_init(|| {
            let best = caught(|| {
                let whole = self.files().map(SymbolTable::of_symtab);
                let exported = self.files().map(SymbolTable::of_dynsym);
                Ok::<_, std::fmt::Error>(whole.chain(exported).find(|table| !table.is_empty()))
            });
            best.ok().flatten().unwrap_or_default()
        })
    }
}
