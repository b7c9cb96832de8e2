//! An address space for stacks in which addresses in a file keep their offsets: every module gets a range of its own.

use mallow_profile::{Address, Location, MappedCode, ModuleId, Stacks};
use rustc_hash::FxHashMap;

/// The start of the first module: above programs that are linked to fixed addresses, so that a reader subtracts the start.
const FIRST_START: u64 = 0x10_0000_0000;
/// Starts of modules are multiples of this.
const START_MULTIPLE: u64 = 0x1_0000_0000;
/// Addresses are below this: readers take higher ones for errors of the unwinder.
const ADDRESS_END: u64 = 1 << 62;

/// The range of every module.
pub(super) struct Layout {
    /// By [`ModuleId`]: start and end; `None` if an address in it is out of range.
    places: Vec<Option<(u64, u64)>>,
    end: u64,
    /// By [`ModuleId`]: where the code was mapped, if that is known.
    mapped: Vec<Option<MappedCode>>,
}

impl Layout {
    pub(super) fn of(stacks: &Stacks) -> Layout {
        let mut sizes = vec![0u64; stacks.modules.len()];
        for location in &stacks.locations {
            if let Address::InModule { module, svma } = location.address
                && let Some(size) = sizes.get_mut(module.0 as usize)
            {
                *size = (*size).max(svma.saturating_add(1));
            }
        }
        let mut end = FIRST_START;
        let places = sizes.into_iter().map(|size| place(&mut end, size)).collect();
        Layout { places, end, mapped: vec![None; stacks.modules.len()] }
    }

    /// Keeps the addresses of modules whose place is known. Readers that look names up in files need the mapping of the code, and not of other parts.
    pub(super) fn mapped_as(mut self, stacks: &Stacks, mapped: &[MappedCode]) -> Layout {
        let by_path: FxHashMap<&str, &MappedCode> =
            mapped.iter().map(|mapped| (mapped.module.as_str(), mapped)).collect();
        let is_made_up = FIRST_START..=self.end;
        for (module, known) in stacks.modules.iter().zip(&mut self.mapped) {
            let found = by_path.get(module.path.as_str()).copied();
            *known = found.filter(|code| !is_made_up.contains(&code.start_avma)).cloned();
        }
        self
    }

    /// Returns where the code of a module was mapped, if that is known.
    pub(super) fn mapped(&self, module: ModuleId) -> Option<&MappedCode> {
        self.mapped.get(module.0 as usize)?.as_ref()
    }

    /// Returns the start and the end of a module.
    pub(super) fn place(&self, module: ModuleId) -> Option<(u64, u64)> {
        self.places.get(module.0 as usize).copied().flatten()
    }

    /// Returns the return address of a location; `None` if it has none that is unique.
    pub(super) fn address(&self, location: &Location) -> Option<u64> {
        match location.address {
            Address::InModule { module, svma } => match self.mapped(module) {
                Some(code) => code.bias.checked_add(svma),
                None => Some(self.place(module)?.0 + svma),
            },
            Address::Anonymous { avma } => {
                let is_free = !(FIRST_START..=self.end).contains(&avma);
                (is_free && (2..ADDRESS_END).contains(&avma)).then_some(avma)
            }
            Address::Unknown => None,
        }
    }
}

/// Allocates a range for a module after `end`, and advances `end`.
fn place(end: &mut u64, size: u64) -> Option<(u64, u64)> {
    let start = *end;
    let its_end = start.checked_add(size)?.checked_next_multiple_of(0x1000)?;
    let next = its_end.checked_add(1)?.checked_next_multiple_of(START_MULTIPLE)?;
    if next >= ADDRESS_END {
        return None;
    }
    *end = next;
    Some((start, its_end))
}

/// Returns whether a location has a name in addition to its address.
pub(super) fn is_named(location: &Location) -> bool {
    let address = match location.address {
        Address::InModule { svma, .. } => svma,
        Address::Anonymous { avma } => avma,
        Address::Unknown => return true,
    };
    match &location.frames[..] {
        [only] => only.file.is_some() || only.function != format!("{address:#x}"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_base::Frame;

    fn location(address: Address, function: &str) -> Location {
        Location { address, frames: vec![Frame { function: function.to_owned(), ..Frame::default() }] }
    }

    #[test]
    fn modules_do_not_meet() {
        let in_module = |module, svma| location(Address::InModule { module: ModuleId(module), svma }, "f");
        let locations = vec![in_module(0, 0x1_2345_6789), in_module(1, u64::MAX), in_module(3, 0x1000)];
        let stacks = Stacks { modules: vec![Default::default(); 4], locations, nodes: Vec::new() };
        let layout = Layout::of(&stacks);
        assert_eq!(layout.place(ModuleId(0)), Some((0x10_0000_0000, 0x11_2345_7000)));
        assert_eq!(layout.place(ModuleId(1)), None);
        assert_eq!(layout.place(ModuleId(2)), Some((0x12_0000_0000, 0x12_0000_0000)));
        assert_eq!(layout.place(ModuleId(3)), Some((0x13_0000_0000, 0x13_0000_2000)));
        let addresses: Vec<_> = stacks.locations.iter().map(|location| layout.address(location)).collect();
        assert_eq!(addresses, [Some(0x11_2345_6789), None, Some(0x13_0000_1000)]);
    }

    #[test]
    fn an_address_that_would_be_taken_for_another_is_none() {
        let layout = Layout::of(&Stacks { modules: vec![Default::default()], ..Stacks::default() });
        for (avma, expected) in
            [(1, None), (0x7f00_0000_0000, Some(0x7f00_0000_0000)), (0x10_0000_0000, None), (u64::MAX, None)]
        {
            assert_eq!(layout.address(&location(Address::Anonymous { avma }, "f")), expected);
        }
        assert_eq!(layout.address(&location(Address::Unknown, "f")), None);
    }

    #[test]
    fn a_bare_address_is_no_name() {
        assert!(!is_named(&location(Address::Anonymous { avma: 31 }, "0x1f")));
        assert!(is_named(&location(Address::Anonymous { avma: 31 }, "0x1e")));
        assert!(is_named(&location(Address::Unknown, "0x1f")));
    }
}
