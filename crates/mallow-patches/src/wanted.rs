//! The functions of a file that are to be seen: those of its allocator, and in a static executable those in front of which the recorder's own stand.

use crate::families::begins_sanitizer;
use crate::names::{self, Family, Meaning};
use mallow_symbols::DefinedFunction;
use mallow_wire::patches::Call;
use std::collections::BTreeMap;

/// A function that is to be seen, by all of its names.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) meaning: Meaning,
    /// The longest that a symbol says; none where none does.
    pub(crate) bytes: Option<usize>,
}

/// A symbol with its name as text.
pub(crate) type Named<'a> = (String, &'a DefinedFunction);

/// What is wanted of a file.
#[derive(Clone, Debug)]
pub(crate) struct WantedFunctions {
    /// What its allocator is called.
    pub(crate) allocator: &'static str,
    /// By their addresses.
    pub(crate) by_svma: BTreeMap<u64, Wanted>,
    /// An allocator is there, and the functions that programs call are not.
    pub(crate) inlined: Option<&'static str>,
}

impl WantedFunctions {
    /// The functions of the allocator in a file, of which these are the functions that could be wanted, without those that are seen another way.
    /// None when it has no allocator.
    pub(crate) fn of(all: &[Named<'_>], is_seen: impl Fn(&str) -> bool) -> Option<WantedFunctions> {
        // A sanitizer's allocator is watched by its own tools.
        if all.iter().any(|(name, _)| begins_sanitizer(name.as_bytes())) {
            return None;
        }
        let prefixes: Vec<&str> = all.iter().filter_map(|(name, _)| names::jemalloc_prefix(name)).collect();
        let known: Vec<(Family, Meaning, &Named<'_>)> = all
            .iter()
            .filter(|(name, _)| !is_seen(name))
            .filter_map(|named| {
                let (family, meaning) = names::meaning_of(&named.0, &prefixes)?;
                // A function of a file's own may have any name.
                let is_meant = named.1.is_global || !matches!(family, Family::Malloc | Family::Operators);
                is_meant.then_some((family, meaning, named))
            })
            .collect();
        // A linker keeps what is called: a function that gives memory and one that takes it back are enough.
        let gives_and_takes = |family: Family| {
            let does =
                |wanted: fn(Call) -> bool| known.iter().any(|row| row.0 == family && wanted(row.1.call));
            does(|call| !matches!(call, Call::Free | Call::Resize)) && does(|call| call == Call::Free)
        };
        let mut families: Vec<Family> =
            known.iter().map(|row| row.0).filter(|family| *family != Family::Operators).collect();
        families.sort_unstable();
        families.dedup();
        families.retain(|family| gives_and_takes(*family));
        let mut inner = all.iter().filter_map(|(name, _)| names::inner_of(name.as_bytes()));
        let inlined = inner.find(|family| !families.contains(family)).map(Family::name);
        let allocator = families.first().map(|family| family.name()).or(inlined)?;
        let mut wanted = WantedFunctions { allocator, by_svma: BTreeMap::new(), inlined };
        let is_libcs = families == [Family::Malloc] && malloc_is_libcs(all);
        for (family, meaning, (name, function)) in known {
            let is_one = match family {
                // Those over libc's `malloc` come by it.
                Family::Operators => !is_libcs,
                family => families.contains(&family),
            };
            if is_one {
                wanted.add(name, function, meaning);
            }
        }
        Some(wanted)
    }

    /// Adds a function, or another name of one.
    pub(crate) fn add(&mut self, name: &str, function: &DefinedFunction, meaning: Meaning) {
        let bytes = usize::try_from(function.bytes).ok().filter(|bytes| *bytes > 0);
        let entry = self.by_svma.entry(function.svma).or_insert_with(|| Wanted {
            name: name.to_owned(),
            meaning,
            bytes,
        });
        entry.bytes = entry.bytes.max(bytes);
        if meaning.call == Call::AllocateOrThrow && entry.meaning.call == Call::Allocate {
            entry.meaning = meaning;
        }
    }
}

/// Whether `malloc` is the one that a static libc brings.
fn malloc_is_libcs(all: &[Named<'_>]) -> bool {
    let at = |wanted: &str| all.iter().find(|(name, _)| name == wanted).map(|(_, function)| function.svma);
    let is_glibcs = at("malloc").is_some_and(|svma| at("__libc_malloc") == Some(svma));
    is_glibcs || at("__libc_malloc_impl").is_some()
}
