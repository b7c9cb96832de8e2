//! Split DWARF: the `.dwo` files and the `.dwp` package to which a binary's debug information may refer.
//!
//! What cannot be found is left out: the caller still has the symbol table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addr2line::SplitDwarfLoad;
use typed_arena::Arena;

use crate::mapped::Mapped;
use crate::reader::Slice;
use crate::sections::{caught, section_bytes, slice};

/// Owns what is loaded while addresses are resolved. References into it stay valid as it grows.
#[derive(Default)]
pub(crate) struct Store {
    files: Arena<Mapped>,
    sections: Arena<Vec<u8>>,
}

/// Finds the parts of split DWARF for one worker.
pub(crate) struct SplitDwarf<'a> {
    store: &'a Store,
    /// Set when any file is requested.
    was_asked: &'a AtomicBool,
    package: Option<gimli::DwarfPackage<Slice<'a>>>,
}

impl<'a> SplitDwarf<'a> {
    /// Looks for a package beside the binary (`app.dwp`); loose files are opened on request.
    pub(crate) fn new(binary: &Path, store: &'a Store, was_asked: &'a AtomicBool) -> Self {
        let mut name = binary.as_os_str().to_owned();
        name.push(".dwp");
        let package = Mapped::open(Path::new(&name)).ok().and_then(|mapped| {
            let mapped = store.files.alloc(mapped);
            caught(|| {
                let file = object::File::parse(&**mapped).map_err(|_| gimli::Error::Io)?;
                gimli::DwarfPackage::load(|id| section(id, &file, store), slice(&[], &file))
            })
            .ok()
        });
        Self { store, was_asked, package }
    }

    /// The DWARF of one split unit, if it is found and has the id that the binary expects.
    pub(crate) fn load(&self, wanted: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<gimli::Dwarf<Slice<'a>>>> {
        self.was_asked.store(true, Ordering::Relaxed);
        let packaged = self.package.as_ref().and_then(|package| {
            let unit = package.find_cu(wanted.dwo_id, &wanted.parent).ok().flatten()?;
            Some(Arc::new(unit))
        });
        packaged.or_else(|| self.load_file(wanted))
    }

    fn load_file(&self, wanted: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<gimli::Dwarf<Slice<'a>>>> {
        let mut path = PathBuf::new();
        for part in [&wanted.comp_dir, &wanted.path].into_iter().flatten() {
            path.push(std::str::from_utf8(part.slice()).ok()?);
        }
        let mapped = self.store.files.alloc(Mapped::open(&path).ok()?);
        let file = object::File::parse(&**mapped).ok()?;
        let mut dwarf = gimli::Dwarf::load(|id| section(id, &file, self.store)).ok()?;
        let header = dwarf.units().next().ok()??;
        if dwarf.unit(header).ok()?.dwo_id != Some(wanted.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&wanted.parent);
        Some(Arc::new(dwarf))
    }
}

fn section<'a>(
    id: gimli::SectionId,
    file: &object::File<'a>,
    store: &'a Store,
) -> Result<Slice<'a>, gimli::Error> {
    let bytes = match id.dwo_name() {
        Some(name) => section_bytes(name, file, &store.sections).map_err(|_| gimli::Error::Io)?,
        None => &[],
    };
    Ok(slice(bytes, file))
}
