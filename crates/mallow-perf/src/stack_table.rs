//! Stacks without doubles, while they come in.

use crate::spaces::{MappedFile, Place};
use mallow_base::Frame;
use mallow_stacks::{Address, Location, LocationId, Module, ModuleId, StackId, StackNode, Stacks};
use rustc_hash::FxHashMap;

/// The kernel's name among files with code.
pub(crate) const KERNEL: &str = "[kernel]";

/// The place of a frame, unique among all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CodePlace {
    /// In a file.
    InFile(Place),
    /// In code without a file, of this process.
    Anonymous(u32, u64),
    /// The same in code that its process's map tells of, by which of its functions is there.
    Made(u32, u64, u64),
    /// In the kernel.
    Kernel(u64),
    /// In a script, by its number.
    Script(u32),
}

impl Place {
    /// Makes it unique among all processes.
    pub(crate) fn of(self, process: u32) -> CodePlace {
        match self {
            Place::Script(number) => CodePlace::Script(number),
            Place::Anonymous(avma) => CodePlace::Anonymous(process, avma),
            in_file => CodePlace::InFile(in_file),
        }
    }
}

/// Stacks.
#[derive(Debug, Default)]
pub(crate) struct StackTable {
    places: FxHashMap<CodePlace, u32>,
    order: Vec<CodePlace>,
    nodes: FxHashMap<(u32, u32), u32>,
    table: Vec<StackNode>,
}

/// No caller.
const NONE: u32 = u32::MAX;

impl StackTable {
    /// Returns the number of a stack whose frames come outermost first; `None` if it is empty.
    pub(crate) fn stack(&mut self, outermost_first: impl Iterator<Item = CodePlace>) -> Option<StackId> {
        let mut parent = NONE;
        for place in outermost_first {
            let next = self.order.len() as u32;
            let location = *self.places.entry(place).or_insert_with(|| {
                self.order.push(place);
                next
            });
            let next = self.table.len() as u32;
            parent = *self.nodes.entry((parent, location)).or_insert_with(|| {
                let parent = (parent != NONE).then_some(StackId(parent));
                self.table.push(StackNode { parent, location: LocationId(location) });
                next
            });
        }
        (parent != NONE).then_some(StackId(parent))
    }

    /// The stacks with addresses for names; what has no file is named by `name`.
    pub(crate) fn finish(
        self,
        files: &[MappedFile],
        mut name: impl FnMut(CodePlace) -> Option<Frame>,
    ) -> Stacks {
        let mut modules: Vec<Module> = files
            .iter()
            .map(|file| Module { path: file.path.clone(), build_id: file.build_id.clone() })
            .collect();
        // The kernel's frames keep their addresses to themselves, but are known as the kernel's.
        if self.order.iter().any(|place| matches!(place, CodePlace::Kernel(_))) {
            modules.push(Module { path: KERNEL.to_owned(), build_id: Vec::new() });
        }
        let location = |place: CodePlace| {
            let (address, shown, module) = match place {
                CodePlace::InFile(Place::InFile(file, svma)) => {
                    let module = files.get(file.0 as usize);
                    (Address::InModule { module: ModuleId(file.0), svma }, svma, module)
                }
                CodePlace::InFile(Place::Anonymous(avma))
                | CodePlace::Anonymous(_, avma)
                | CodePlace::Made(_, avma, _)
                | CodePlace::Kernel(avma) => (Address::Anonymous { avma }, avma, None),
                CodePlace::Script(_) | CodePlace::InFile(Place::Script(_)) => (Address::Unknown, 0, None),
            };
            let nameless = || Frame {
                function: format!("{shown:#x}"),
                module: module.map(|file| file.path.clone()),
                ..Frame::default()
            };
            Location { address, frames: vec![name(place).unwrap_or_else(nameless)] }
        };
        Stacks { modules, locations: self.order.into_iter().map(location).collect(), nodes: self.table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::FileIndex;

    #[test]
    fn equal_stacks_are_one() {
        let mut table = StackTable::default();
        let place = |svma| CodePlace::InFile(Place::InFile(FileIndex(0), svma));
        let one = table.stack([place(1), place(2), CodePlace::Kernel(3)].into_iter());
        let other = table.stack([place(1), place(2)].into_iter());
        assert_eq!(table.stack([place(1), place(2), CodePlace::Kernel(3)].into_iter()), one);
        assert_eq!((one, other, table.stack([].into_iter())), (Some(StackId(2)), Some(StackId(1)), None));
        let files = [MappedFile { path: "/bin/a".into(), build_id: vec![7] }];
        let stacks = table.finish(&files, |place| {
            matches!(place, CodePlace::Kernel(_)).then(|| Frame { function: "k".into(), ..Frame::default() })
        });
        let names: Vec<&str> = stacks.frames(one).map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["k", "0x2", "0x1"]);
        assert_eq!(stacks.modules[0].build_id, [7]);
        assert_eq!(stacks.modules[1].path, KERNEL);
    }
}
