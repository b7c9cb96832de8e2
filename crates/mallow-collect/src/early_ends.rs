//! Stacks that end too early, in code of files that has no unwind table for it.
//!
//! Where the guess of a caller led on, a stack is as good as any that is unwound by frame pointers. Where a stack ends at such a frame, or at an address behind
//! it that is no code that anybody knows, its callers are missing.

use crate::exited::ExitedProcess;
use crate::module_map::ModuleMap;
use mallow_base::Frame;
use mallow_profile::{Aggregator, EarlyEnds};
use mallow_trace::SymbolKey;
use mallow_wire::shared::ADDRESS_TRUNCATED;
use std::collections::BTreeMap;

/// Counts such stacks, by the module in which they end. `frames` and `locations` are as in [`crate::symbols::Named`].
pub(crate) fn early_ends(
    processes: &[ExitedProcess],
    frames: &[Vec<Frame>],
    locations: &[Vec<u32>],
) -> Vec<EarlyEnds> {
    let mut modules: BTreeMap<&str, EarlyEnds> = BTreeMap::new();
    for (process, locations) in processes.iter().zip(locations) {
        if process.guesses.keys.is_empty() {
            continue;
        }
        let outer = |address: u32| {
            let frames = locations.get(address as usize).and_then(|location| frames.get(*location as usize));
            frames.and_then(|frames| frames.last())
        };
        let ends = Ends::of(process, outer);
        for site in process.folded.sites().filter(|site| site.stack != Aggregator::NO_STACK) {
            let Some(module) = ends.module_of(site.stack.0) else { continue };
            let ends = modules
                .entry(module)
                .or_insert_with(|| EarlyEnds { module: module.to_owned(), ..EarlyEnds::default() });
            ends.allocations += site.totals.allocations;
            ends.or_more |= process.guesses.or_more;
        }
    }
    let mut modules: Vec<EarlyEnds> = modules.into_values().filter(|ends| ends.allocations > 0).collect();
    modules.sort_by(|a, b| b.allocations.cmp(&a.allocations).then_with(|| a.module.cmp(&b.module)));
    modules
}

/// Where the stacks of a process end.
struct Ends<'a> {
    /// Of each address of its stacks, the module in which they end too early if it is the outermost.
    modules: Vec<Option<&'a str>>,
    /// Of each address, whether it is none that anybody knows.
    unknown: Vec<bool>,
    /// For each node the outermost address, and the one that it called, if it is not the same.
    outermost: Vec<[u32; 2]>,
}

impl<'a> Ends<'a> {
    fn of<'f>(process: &'a ExitedProcess, outer: impl Fn(u32) -> Option<&'f Frame>) -> Ends<'a> {
        let map = ModuleMap::of(&process.modules);
        let (mut modules, mut unknown) = (Vec::new(), Vec::new());
        for ((key, of_node), address) in process.stacks.addresses_from(0).zip(process.stacks.keys()).zip(0..)
        {
            let module = map.at(&key).map(|at| process.modules[at].path.as_str());
            let function = outer(address).map_or("", |frame| frame.function.as_str());
            unknown.push(module.is_none() && is_junk(&key, function));
            let is_guess = process.guesses.keys.contains(of_node);
            modules.push(module.filter(|module| is_guess && !process.guesses.is_beginning(module, function)));
        }
        let mut outermost: Vec<[u32; 2]> = Vec::with_capacity(process.stacks.len());
        for (parent, address) in process.stacks.links() {
            outermost.push(match parent.map(|parent| outermost[parent as usize]) {
                None => [address; 2],
                Some([end, called]) if end == called => [end, address],
                Some(known) => known,
            });
        }
        Ends { modules, unknown, outermost }
    }

    /// The module in which a stack ends too early, if it does.
    fn module_of(&self, stack: u32) -> Option<&'a str> {
        let [end, called] = *self.outermost.get(stack as usize)?;
        let at = if self.unknown[end as usize] { called } else { end };
        self.modules[at as usize]
    }
}

/// Returns whether nothing is known of an address outside of all modules: what lies where a return address was guessed.
fn is_junk(key: &SymbolKey, function: &str) -> bool {
    key.avma != ADDRESS_TRUNCATED && function.starts_with("0x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guesses::Guesses;
    use mallow_trace::{MappedModule, StackNode};
    use mallow_wire::shared::node_key;

    /// Addresses 100 to 199 are the program's, 200 to 299 the loader's; the callers at 110 and 210 were guessed.
    fn process(stacks: &[&[u64]]) -> (ExitedProcess, Vec<u32>) {
        let module = |path: &str, start_avma| MappedModule {
            path: path.into(),
            build_id: Vec::new(),
            start_avma,
            end_avma: start_avma + 100,
            bias: 0,
            generation: 0,
        };
        let (mut nodes, mut ends) = (Vec::new(), Vec::new());
        for stack in stacks {
            let mut parent = None;
            for avma in stack.iter().copied() {
                nodes.push(StackNode { parent, avma, exact: false, generation: 0 });
                parent = Some(nodes.len() as u32 - 1);
            }
            ends.extend(parent);
        }
        let modules = vec![module("/bin/app", 100), module("/lib/ld-linux-x86-64.so.2", 200)];
        let mut process = ExitedProcess::for_test(modules, &nodes);
        process.guesses.keys = [110, 210].map(|avma| node_key(avma, false, 0)).into_iter().collect();
        (process, ends)
    }

    /// The modules in which these stacks, outermost frames first, end too early. All functions have this name.
    fn ends_of(stacks: &[&[u64]], function: &str) -> Vec<Option<String>> {
        let (process, nodes) = process(stacks);
        let frame = Frame { function: function.into(), ..Frame::default() };
        let ends = Ends::of(&process, |_| Some(&frame));
        nodes.into_iter().map(|node| ends.module_of(node).map(str::to_owned)).collect()
    }

    #[test]
    fn a_stack_ends_too_early_at_a_guess_or_at_no_code_behind_one() {
        let app = Some("/bin/app".to_owned());
        let stacks: [&[u64]; 8] = [
            &[110],
            &[110, 120],
            &[120, 110],
            &[900, 110, 120],
            &[900, 120, 110],
            &[901, 902, 110],
            &[900],
            &[210, 110],
        ];
        let found = ends_of(&stacks, "0x6e");
        assert_eq!(found, [app.clone(), app.clone(), None, app, None, None, None, None]);
    }

    #[test]
    fn made_code_that_has_a_name_and_what_begins_are_ends() {
        let stacks: [&[u64]; 2] = [&[900, 110], &[110]];
        let app = || Some("/bin/app".to_owned());
        assert_eq!(ends_of(&stacks, "work"), [None, app()]);
        assert_eq!(ends_of(&stacks, "runtime.asmcgocall.abi0"), [None, None]);
        let gos =
            |is_go, executable: &str| Guesses { is_go, executable: executable.into(), ..Guesses::default() };
        let is_beginning = |guesses: Guesses| guesses.is_beginning("./app", "0x1");
        assert!(
            is_beginning(gos(true, "app"))
                && !is_beginning(gos(true, "sh"))
                && !is_beginning(gos(false, "app"))
        );
        assert_eq!(ends_of(&[&[ADDRESS_TRUNCATED, 110]], "0x1"), [None], "cut because it is deep");
    }
}
