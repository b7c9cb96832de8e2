//! Profiles of several runs as one.

use crate::CpuProfile;
use mallow_stacks::{Address, LocationId, ModuleId, ProcessIndex, Site, StacksBuilder};

/// Adds the sums of several runs of a command up. Single samples and threads are left out: runs have no common time.
pub fn together(runs: &[CpuProfile]) -> CpuProfile {
    let mut builder = StacksBuilder::default();
    let mut sum = CpuProfile::default();
    for run in runs {
        let modules: Vec<ModuleId> =
            run.stacks.modules.iter().map(|module| builder.module(module.clone())).collect();
        let location = |at: &mallow_stacks::Location| {
            let address = match at.address {
                Address::InModule { module, svma } => match modules.get(module.0 as usize) {
                    Some(module) => Address::InModule { module: *module, svma },
                    None => Address::Unknown,
                },
                // Code without a file lies elsewhere in each run.
                Address::Anonymous { .. } | Address::Unknown => Address::Unknown,
            };
            builder.location(address, at.frames.clone())
        };
        let locations: Vec<LocationId> = run.stacks.locations.iter().map(location).collect();
        let before = sum.processes.len() as u32;
        sum.processes.extend(run.processes.iter().cloned());
        for site in &run.sites {
            let mut stack: Vec<LocationId> = run
                .stacks
                .chain(site.stack)
                .map(|node| locations[run.stacks.node(node).location.0 as usize])
                .collect();
            stack.reverse();
            let process = ProcessIndex(site.process.0 + before);
            sum.sites.push(Site { process, stack: builder.stack(stack), totals: site.totals });
        }
        sum.recording.command.clone_from(&run.recording.command);
        sum.recording.event.clone_from(&run.recording.event);
        sum.recording.frequency_hz = run.recording.frequency_hz;
        sum.recording.duration_ns = sum.recording.duration_ns.saturating_add(run.recording.duration_ns);
        sum.known = run.known;
    }
    sum.stacks = builder.finish();
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuProcess, CpuTotals};
    use mallow_base::Frame;
    use mallow_stacks::Module;

    /// `main` with `count` samples, in a file that is the second of its run when `is_second`.
    fn run(is_second: bool, count: u64) -> CpuProfile {
        let mut builder = StacksBuilder::default();
        if is_second {
            builder.module(Module { path: "/lib/other.so".into(), build_id: Vec::new() });
        }
        let module = builder.module(Module { path: "/bin/app".into(), build_id: vec![1] });
        let frame = Frame { function: "main".into(), ..Frame::default() };
        let main = builder.location(Address::InModule { module, svma: 0x10 }, vec![frame]);
        let stack = builder.stack([main, main]);
        let totals = CpuTotals { samples: count, ..CpuTotals::default() };
        CpuProfile {
            sites: vec![Site { process: ProcessIndex(0), stack, totals }],
            stacks: builder.finish(),
            processes: vec![CpuProcess { pid: 1, ..CpuProcess::default() }],
            ..CpuProfile::default()
        }
    }

    #[test]
    fn equal_stacks_of_two_runs_are_one_stack() {
        let sum = together(&[run(false, 3), run(true, 4)]);
        assert_eq!(sum.totals().samples, 7);
        assert_eq!((sum.stacks.locations.len(), sum.stacks.modules.len(), sum.processes.len()), (1, 2, 2));
        assert_eq!(sum.sites[0].stack, sum.sites[1].stack);
        assert_eq!(sum.stacks.chain(sum.sites[0].stack).count(), 2);
        assert_eq!(sum.stacks.modules[0].path, "/bin/app");
    }
}
