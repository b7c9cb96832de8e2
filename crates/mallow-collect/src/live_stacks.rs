//! The stacks of a recording under way: names for them, and profiles of what lived on them.

use crate::live_heap::{LiveHeap, LiveProcess};
use crate::made_code::MadeCode;
use crate::module_map::ModuleMap;
use crate::process::TracedProcess;
use crate::stack_table::StackTable;
use crate::symbols::Resolve;
use mallow_base::Frame;
use mallow_profile::{
    Address, Availability, LiveSite, LocationId, Module, Process, Profile, ProfileBuilder, Recording,
    SiteTotals, StackId, Summary, Totals,
};
use mallow_scripts::Scripts;
use mallow_trace::{MappedModule, StackNode, SymbolKey};
use mallow_wire::shared::{ADDRESS_TRUNCATED, node_key};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The stacks of every process that was recorded at the time of the query. Symbols are resolved once each.
#[derive(Clone, Debug, Default)]
pub struct LiveStacks {
    processes: Vec<StacksOf>,
    named: FxHashMap<(Module, u64), Vec<Frame>>,
}

#[derive(Clone, Debug)]
struct StacksOf {
    index: u32,
    command: String,
    modules: Vec<MappedModule>,
    map: ModuleMap,
    stacks: Arc<StackTable>,
    scripts: Arc<Scripts>,
    made: Arc<MadeCode>,
}

impl LiveStacks {
    pub(crate) fn of(processes: &[TracedProcess]) -> LiveStacks {
        let stacks_of = |process: &TracedProcess| StacksOf {
            index: process.index,
            command: process.command().to_owned(),
            modules: process.modules().to_vec(),
            map: ModuleMap::of(process.modules()),
            stacks: Arc::new(process.stacks().snapshot()),
            scripts: Arc::new(process.scripts().clone()),
            made: Arc::new(process.made_code()),
        };
        LiveStacks { processes: processes.iter().map(stacks_of).collect(), named: FxHashMap::default() }
    }

    /// Returns the frames of stacks, each of the process with that index, innermost first. An unknown stack has none.
    pub fn frames(&mut self, stacks: &[(u32, StackId)], resolve: Resolve<'_>) -> Vec<Vec<Frame>> {
        self.name(stacks, resolve);
        stacks.iter().map(|(index, stack)| self.frames_of(*index, *stack)).collect()
    }

    /// Returns whether the process with that index was recorded at the time of the query.
    pub fn knows(&self, index: u32) -> bool {
        self.process(index).is_some()
    }

    fn frames_of(&self, index: u32, stack: StackId) -> Vec<Frame> {
        let Some(process) = self.process(index) else { return Vec::new() };
        process.chain(stack).flat_map(|node| self.located(process, &node).1).collect()
    }

    fn process(&self, index: u32) -> Option<&StacksOf> {
        self.processes.iter().find(|process| process.index == index)
    }

    /// Returns a profile of the live blocks: live bytes are in place of leaked ones.
    pub fn profile(&mut self, heap: &LiveHeap, recording: Recording, resolve: Resolve<'_>) -> Profile {
        let stacks: Vec<(u32, StackId)> = heap
            .processes
            .iter()
            .flat_map(|process| process.sites.iter().map(|site| (process.index, site.stack)))
            .collect();
        self.name(&stacks, resolve);
        let known = Availability {
            allocations: true,
            bytes: true,
            leaked: true,
            leaked_blocks: true,
            ..Availability::NOTHING
        };
        let mut builder = ProfileBuilder::new(recording, known);
        for live in &heap.processes {
            self.add_process(&mut builder, live);
        }
        builder.finish()
    }

    /// A profile of what threads of the process with this index did in a scope.
    pub fn profile_of_scope(
        &mut self,
        index: u32,
        summary: &Summary,
        recording: Recording,
        resolve: Resolve<'_>,
    ) -> Profile {
        let stacks: Vec<(u32, StackId)> = summary.sites.iter().map(|site| (index, site.stack)).collect();
        self.name(&stacks, resolve);
        let mut builder = ProfileBuilder::new(recording, Availability::ALL);
        let stacks = self.process(index);
        let process = builder.add_process(Process {
            pid: std::process::id(),
            command: stacks.map(|stacks| stacks.command.clone()).unwrap_or_default(),
            totals: summary.totals,
            peak_us: summary.peak_us,
            frees_unmatched: summary.frees_unmatched,
            ..Process::default()
        });
        for site in &summary.sites {
            let stack = stacks.and_then(|stacks| self.add_stack(&mut builder, stacks, site.stack));
            builder.add_site(process, stack, &site.totals);
        }
        builder.finish()
    }

    fn add_process(&self, builder: &mut ProfileBuilder, live: &LiveProcess) {
        let stacks = self.process(live.index);
        let process = builder.add_process(Process {
            pid: live.pid,
            command: stacks.map(|stacks| stacks.command.clone()).unwrap_or_default(),
            totals: Totals {
                allocations: live.allocations,
                bytes: live.sites.iter().map(|site| site.allocated_bytes).sum(),
                leaked_bytes: live.live_bytes,
                leaked_blocks: live.live_blocks,
                ..Totals::default()
            },
            ..Process::default()
        });
        for site in &live.sites {
            let stack = stacks.and_then(|stacks| self.add_stack(builder, stacks, site.stack));
            builder.add_site(process, stack, &totals_of(site));
        }
    }

    fn add_stack(&self, builder: &mut ProfileBuilder, process: &StacksOf, stack: StackId) -> Option<StackId> {
        let mut outermost_first: Vec<LocationId> = process
            .chain(stack)
            .map(|node| {
                let (at, frames) = self.located(process, &node);
                let address = match at {
                    At::Module(module, svma) => Address::InModule { module: builder.module(module), svma },
                    At::Nowhere(avma) => Address::Anonymous { avma },
                    At::Script => Address::Unknown,
                };
                builder.location(address, frames)
            })
            .collect();
        outermost_first.reverse();
        builder.stack(outermost_first)
    }

    /// Returns the module of a node, and its frames.
    fn located(&self, process: &StacksOf, node: &StackNode) -> (At, Vec<Frame>) {
        if let Some(frame) = process.scripts.frame(node_key(node.avma, node.exact, node.generation)) {
            return (At::Script, vec![frame]);
        }
        let at = process.at(node);
        if let (At::Nowhere(_), Some(frame)) = (&at, process.made.frame(&key_of(node))) {
            return (At::Script, vec![frame.clone()]);
        }
        match at {
            At::Script => (At::Script, Vec::new()),
            At::Nowhere(avma) => {
                let function = match avma {
                    ADDRESS_TRUNCATED => "[deeper frames were cut]".to_owned(),
                    avma => format!("{avma:#x}"),
                };
                (At::Nowhere(avma), vec![Frame { function, ..Frame::default() }])
            }
            At::Module(module, svma) => {
                let frames =
                    self.named.get(&(module.clone(), sought(svma, node))).cloned().unwrap_or_default();
                (At::Module(module, svma), frames)
            }
        }
    }

    /// Looks up the names on these stacks that are not known yet, module by module.
    fn name(&mut self, stacks: &[(u32, StackId)], resolve: Resolve<'_>) {
        let mut wanted: FxHashMap<Module, Vec<u64>> = FxHashMap::default();
        for process in &self.processes {
            let mut seen = vec![false; process.stacks.len()];
            for (_, stack) in stacks.iter().filter(|(index, _)| *index == process.index) {
                let mut at = Some(stack.0);
                while let Some(number) = at.filter(|at| seen.get(*at as usize) == Some(&false)) {
                    seen[number as usize] = true;
                    let Some(node) = process.stacks.node(number) else { break };
                    if let At::Module(module, svma) = process.at(&node) {
                        wanted.entry(module).or_default().push(sought(svma, &node));
                    }
                    at = node.parent;
                }
            }
        }
        for (module, mut svmas) in wanted {
            svmas.sort_unstable();
            svmas.dedup();
            svmas.retain(|svma| !self.named.contains_key(&(module.clone(), *svma)));
            let frames = resolve(&module, &svmas);
            let named = svmas.into_iter().zip(frames);
            self.named.extend(named.map(|(svma, frames)| ((module.clone(), svma), frames)));
        }
    }
}

/// Returns the address to resolve: a return address points behind the call, one less is within it.
fn sought(svma: u64, node: &StackNode) -> u64 {
    svma.wrapping_sub(u64::from(!node.exact))
}

fn key_of(node: &StackNode) -> SymbolKey {
    SymbolKey { avma: node.avma, exact: node.exact, generation: node.generation, location: 0 }
}

/// The module of an address.
enum At {
    Module(Module, u64),
    Nowhere(u64),
    Script,
}

impl StacksOf {
    /// The nodes of a stack, innermost first.
    fn chain(&self, stack: StackId) -> impl Iterator<Item = StackNode> {
        let node = |number: u32| self.stacks.node(number);
        // A parent's number is smaller than its child's, so this ends.
        std::iter::successors(node(stack.0), move |at| at.parent.and_then(node))
    }

    fn at(&self, node: &StackNode) -> At {
        match self.map.at(&key_of(node)).map(|at| &self.modules[at]) {
            Some(module) => {
                let (path, build_id) = (module.path.clone(), module.build_id.clone());
                At::Module(Module { path, build_id }, node.avma.wrapping_sub(module.bias))
            }
            None => At::Nowhere(node.avma),
        }
    }
}

fn totals_of(site: &LiveSite) -> SiteTotals {
    SiteTotals {
        allocations: site.allocations,
        bytes: site.allocated_bytes,
        leaked_bytes: site.bytes,
        leaked_blocks: u64::from(site.blocks),
        ..SiteTotals::default()
    }
}
