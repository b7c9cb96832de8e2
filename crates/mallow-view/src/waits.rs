//! Who waited, and in what: functions of the program itself. All waits end in the same few functions of the kernel, which say nothing.

use mallow_base::Frame;
use mallow_cpu::{CpuProfile, CpuTotals};
use mallow_stacks::Weights;
use rustc_hash::FxHashMap;

/// Waits of one function of the program in one call.
#[derive(Clone, Copy, Debug)]
pub struct WaitRow<'a> {
    /// The caller: the innermost frame outside the kernel and the C library, or the outermost of all if there is
    /// none.
    pub caller: &'a Frame,
    /// The called function: the next frame further in; `None` if the caller waited itself.
    pub called: Option<&'a Frame>,
    /// The sums of the waits.
    pub totals: CpuTotals,
}

/// Prefixes of the C library's files and of the kernel. Both wait on behalf of others.
const SYSTEM: [&str; 7] = ["[kernel]", "[vdso]", "libc.so", "libc-2", "libpthread", "ld-", "libc.musl"];

/// The waits in which threads were blocked, the longest first.
pub fn waits(profile: &CpuProfile) -> Vec<WaitRow<'_>> {
    let stacks = &profile.stacks;
    let mut rows: Vec<WaitRow<'_>> = Vec::new();
    let mut known = FxHashMap::<_, usize>::default();
    for site in profile.sites.iter().filter(|site| site.totals.blocked_ns > 0) {
        let mut frames = stacks
            .chain(site.stack)
            .flat_map(|id| &stacks.locations[stacks.node(id).location.0 as usize].frames);
        let (mut caller, mut called) = (None, None);
        for frame in &mut frames {
            called = caller.replace(frame);
            if !is_system(frame) {
                break;
            }
        }
        let Some(caller) = caller else { continue };
        let name = |frame: &'_ Frame| (frame.function.clone(), frame.module.clone());
        let row = *known.entry((name(caller), called.map(name))).or_insert_with(|| {
            rows.push(WaitRow { caller, called, totals: CpuTotals::default() });
            rows.len() - 1
        });
        rows[row].totals.add(&site.totals);
    }
    rows.sort_by_key(|row| std::cmp::Reverse((row.totals.blocked_ns, row.totals.switches)));
    rows
}

fn is_system(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    let name = module.rsplit('/').next().unwrap_or_default();
    SYSTEM.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_stacks::{Address, ProcessIndex, Site, StacksBuilder};

    #[test]
    fn a_wait_is_the_programs_call_and_not_the_kernels_function() {
        let mut builder = StacksBuilder::default();
        let mut site = |frames: &[(&str, &str)], blocked_ns| {
            let mut location = |(function, module): &(&str, &str)| {
                let frame = Frame {
                    function: (*function).into(),
                    module: Some((*module).into()),
                    ..Frame::default()
                };
                builder.location(Address::Unknown, vec![frame])
            };
            let locations: Vec<_> = frames.iter().map(&mut location).collect();
            let stack = builder.stack(locations);
            let totals = CpuTotals { blocked_ns, switches: 1, ..CpuTotals::default() };
            Site { process: ProcessIndex(0), stack, totals }
        };
        let kernel = |function| (function, "[kernel]");
        let libc = |function| (function, "/lib/x86_64-linux-gnu/libc.so.6");
        // From the outermost frame inwards.
        let sites = vec![
            site(&[("main", "app"), ("take", "app"), libc("pthread_cond_wait"), kernel("futex_wait")], 40),
            site(&[("main", "app"), ("take", "app"), libc("pthread_cond_wait"), kernel("schedule")], 2),
            site(&[("main", "app"), ("take", "app"), libc("read"), kernel("pipe_read")], 10),
            site(&[libc("start_thread"), kernel("exit")], 5),
            site(&[("main", "app")], 1),
            site(&[("main", "app"), ("busy", "app")], 0),
        ];
        let profile = CpuProfile { sites, stacks: builder.finish(), ..CpuProfile::default() };
        let told: Vec<_> = waits(&profile)
            .iter()
            .map(|row| {
                let called = row.called.map_or("-", |frame| &frame.function[..]);
                (row.caller.function.clone(), called.to_owned(), row.totals.blocked_ns, row.totals.switches)
            })
            .collect();
        let row = |caller: &str, called: &str, ns, count| (caller.to_owned(), called.to_owned(), ns, count);
        assert_eq!(
            told,
            [
                row("take", "pthread_cond_wait", 42, 2),
                row("take", "read", 10, 1),
                row("start_thread", "exit", 5, 1),
                row("main", "-", 1, 1)
            ]
        );
    }
}
