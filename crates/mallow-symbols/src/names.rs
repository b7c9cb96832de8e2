//! The symbol table of one module, whichever of its files has the best one.
//!
//! The table is read when the first name is asked for: with full DWARF most modules never need it.

use std::sync::OnceLock;

use crate::sections::caught;
use crate::symtab::SymbolTable;

/// Which functions a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// No table, or an empty one.
    Nothing,
    /// The exports of a stripped library.
    Exported,
    /// All of them.
    Whole,
}

/// Names of physical functions by address.
pub(crate) struct Names<'a> {
    module: &'a str,
    own: Option<object::File<'a>>,
    debug: Option<object::File<'a>>,
    best: OnceLock<(Coverage, SymbolTable<'a>)>,
}

impl<'a> Names<'a> {
    /// Names of `module` from its own file and its separate debug file.
    pub(crate) fn new(
        module: &'a str,
        own: Option<object::File<'a>>,
        debug: Option<object::File<'a>>,
    ) -> Self {
        Self { module, own, debug, best: OnceLock::new() }
    }

    /// The path under which the module was mapped.
    pub(crate) fn module(&self) -> &'a str {
        self.module
    }

    /// The mangled name of the function at an address.
    pub(crate) fn at(&self, svma: u64) -> Option<&'a [u8]> {
        self.best().1.name_at(svma)
    }

    /// Returns how much the best table has.
    pub(crate) fn coverage(&self) -> Coverage {
        self.best().0
    }

    fn files(&self) -> impl Iterator<Item = &object::File<'a>> {
        [&self.own, &self.debug].into_iter().flatten()
    }

    fn best(&self) -> &(Coverage, SymbolTable<'a>) {
        self.best.get_or_init(|| {
            let found = caught(|| {
                let whole = self.files().map(|file| (Coverage::Whole, SymbolTable::of_symtab(file)));
                let exported = self.files().map(|file| (Coverage::Exported, SymbolTable::of_dynsym(file)));
                Ok::<_, std::fmt::Error>(whole.chain(exported).find(|(_, table)| !table.is_empty()))
            });
            found.ok().flatten().unwrap_or((Coverage::Nothing, SymbolTable::default()))
        })
    }
}
