//! The beginnings of a debug file's packed sections, where all that lookups need lies there.

use crate::headers::{Unit, first_abbreviation, root, units_in};
use crate::reader::Slice;
use crate::units;
use crate::unpacking::Unpacking;
use gimli::{DebugAbbrev, RunTimeEndian, SectionId};
use std::ops::Range;

/// Which part of a section is its beginning. Beyond it, unpacking whole sections beside each other takes less time.
const PART: usize = 3;

/// Sections up to the end of the last unit that is needed, of its abbreviations and of its lines.
pub(crate) struct Beginnings {
    pub(crate) info: Vec<u8>,
    pub(crate) abbreviations: Vec<u8>,
    pub(crate) lines: Vec<u8>,
}

impl Beginnings {
    /// Unpacks the units up to the one that begins at `last_unit`, and what they refer to. None where that is more than the beginning, or not known.
    pub(crate) fn of(file: &object::File<'_>, last_unit: usize) -> Option<Beginnings> {
        let info = Unpacking::of(SectionId::DebugInfo, file)?;
        if last_unit > info.bytes_max() / PART {
            return None;
        }
        let info = info.up_to_length_at(last_unit)?;
        let units = units_in(&info)?;
        let tables = units.iter().map(|unit| unit.header.debug_abbrev_offset().0);
        let abbreviations = Unpacking::of(SectionId::DebugAbbrev, file)?.up_to_table_at(tables.max()?)?;
        let of_units = units.iter().map(|unit| line_program(unit, Slice::little(&abbreviations)));
        let lines = Unpacking::of(SectionId::DebugLine, file)?;
        let lines = match of_units.collect::<Option<Vec<_>>>()?.into_iter().flatten().max() {
            Some(last_program) => lines.up_to_length_at(last_program)?,
            None => Vec::new(),
        };
        Some(Beginnings { info, abbreviations, lines })
    }

    /// The units that lookups of `svmas` (sorted) do not need. None where they may need others than these.
    pub(crate) fn unneeded(&self, aranges: Slice<'_>, svmas: &[u64]) -> Option<Vec<Range<usize>>> {
        units::unneeded(
            &self.info,
            aranges,
            Slice::little(&self.abbreviations),
            Slice::little(&self.lines),
            svmas,
        )
    }
}

/// Where the lines of a unit's source begin. None inside where it has none, outside where it cannot be read.
fn line_program(unit: &Unit<'_>, abbreviations: Slice<'_>) -> Option<Option<usize>> {
    let by_first = first_abbreviation(unit, abbreviations).and_then(|table| root(unit, &table));
    let by_all = || {
        let tables = DebugAbbrev::new(abbreviations.slice(), RunTimeEndian::Little);
        root(unit, &unit.header.abbreviations(&tables).ok()?)
    };
    by_first.or_else(by_all).map(|root| root.line_program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection};

    #[test]
    fn sections_are_unpacked_to_the_end_of_what_the_last_unit_needs() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["first", "second", "third", "fourth"];
        for name in names {
            let source = format!("int {name}(int x) {{ return x + 1; }}\n");
            std::fs::write(folder.path().join(format!("{name}.c")), source).unwrap();
        }
        // Another table of abbreviations.
        std::fs::write(folder.path().join("third.c"), "long third(char *x) { return *x; }\n").unwrap();
        let build = |words: &[&str]| {
            let sources = names.map(|name| format!("{name}.c"));
            let gcc = std::process::Command::new("gcc")
                .current_dir(folder.path())
                .args(["-g", "-O0", "-shared", "-fPIC"])
                .args(words)
                .args(sources)
                .status();
            assert!(gcc.unwrap().success());
        };
        build(&["-gz=none", "-o", "plain"]);
        build(&["-gz=zlib", "-o", "packed"]);
        let [plain, packed] =
            ["plain", "packed"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
        let [plain, packed] = [&plain, &packed].map(|bytes| object::File::parse(&**bytes).unwrap());
        let whole = [".debug_info", ".debug_abbrev", ".debug_line"]
            .map(|name| plain.section_by_name(name).unwrap().data().unwrap());
        let units = units_in(whole[0]).unwrap();
        assert_eq!(units.len(), 4);
        let of = |unit: usize| Beginnings::of(&packed, units[unit].range.start).unwrap();
        for unit in 0..2 {
            let Beginnings { info, abbreviations, lines } = of(unit);
            assert_eq!(info, whole[0][..units[unit].range.end]);
            let next = &units[unit + 1];
            assert_eq!(abbreviations, whole[1][..next.header.debug_abbrev_offset().0]);
            let next = line_program(next, Slice::little(whole[1])).unwrap().unwrap();
            assert_eq!(lines, whole[2][..next]);
        }
        assert!(Beginnings::of(&packed, units[3].range.start).is_none(), "not the beginning");
        assert!(Beginnings::of(&plain, 0).is_none(), "nothing to unpack");
    }
}
