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
    mini: Option<object::File<'a>>,
    best: OnceLock<(Coverage, SymbolTable<'a>)>,
    exported: OnceLock<SymbolTable<'a>>,
}

impl<'a> Names<'a> {
    /// Names of `module` from its own file, its separate debug file and the small table that is packed into its own.
    pub(crate) fn new(module: &'a str, [own, debug, mini]: [Option<object::File<'a>>; 3]) -> Self {
        Self { module, own, debug, mini, best: OnceLock::new(), exported: OnceLock::new() }
    }

    /// The path under which the module was mapped.
    pub(crate) fn module(&self) -> &'a str {
        self.module
    }

    /// The mangled name of the function at an address.
    pub(crate) fn at(&self, svma: u64) -> Option<&'a [u8]> {
        // The small table leaves out what is exported.
        self.best().1.name_at(svma).or_else(|| self.exported()?.name_at(svma))
    }

    /// Returns how much the best table has.
    pub(crate) fn coverage(&self) -> Coverage {
        self.best().0
    }

    /// What the module's own file exports, where its other functions are in the small table.
    fn exported(&self) -> Option<&SymbolTable<'a>> {
        let own = self.own.as_ref().filter(|_| self.mini.is_some())?;
        let table = || caught(|| Ok::<_, std::fmt::Error>(SymbolTable::of_dynsym(own))).unwrap_or_default();
        Some(self.exported.get_or_init(table))
    }

    fn files(&self) -> impl Iterator<Item = &object::File<'a>> {
        [&self.own, &self.debug, &self.mini].into_iter().flatten()
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
