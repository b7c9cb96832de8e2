//! Every way in which two threads and handlers of traps can come into the start of a process at once: one shared memory is installed,
//! that one is announced, once, every call finds it, and nobody waits for ever.
//!
//! A start is the steps of `started` and `introduce`. A handler runs on top of the step that it interrupted, to its end, while the other
//! thread goes on. States that were seen before are not gone through again.

use std::collections::HashSet;

/// What differs in the twins that must be found out.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Rules {
    AsWritten,
    /// A handler waits for the start that it interrupted.
    HandlerWaits,
    /// Whoever has made shared memory installs it, whether or not there is one.
    InstallsAlways,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    LookAtStage,
    TakeStage,
    LookForInstalled,
    Make,
    Install,
    Use,
    Announce,
    SetReady,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Start {
    step: Step,
    /// Whether it took the stage, and will say that it is over.
    is_outermost: bool,
    fresh: u32,
    has_won: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Nobody,
    Starting(usize),
    Ready,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    rules: Rules,
    stage: Stage,
    installed: Option<u32>,
    shared: Option<u32>,
    announced: Vec<u32>,
    made: u32,
    /// Of each thread, the starts under way, each interrupted by the next.
    threads: [Vec<Start>; 2],
    traps_left: u32,
}

const BEGIN: Start = Start { step: Step::LookAtStage, is_outermost: false, fresh: 0, has_won: false };

impl World {
    fn of(rules: Rules) -> World {
        World {
            rules,
            stage: Stage::Nobody,
            installed: None,
            shared: None,
            announced: Vec::new(),
            made: 0,
            threads: [vec![BEGIN], vec![BEGIN]],
            traps_left: 2,
        }
    }

    /// The world after a thread's next step; none when it has to wait or has started.
    fn after(&self, thread: usize) -> Option<World> {
        let mut next = self.clone();
        let mut start = next.threads[thread].pop()?;
        let go_on = match start.step {
            Step::LookAtStage if self.stage == Stage::Ready => None,
            Step::LookAtStage => Some(Step::TakeStage),
            Step::TakeStage => match self.stage {
                Stage::Nobody => {
                    next.stage = Stage::Starting(thread);
                    start.is_outermost = true;
                    Some(Step::LookForInstalled)
                }
                Stage::Ready => None,
                Stage::Starting(other) if other == thread && self.rules != Rules::HandlerWaits => {
                    Some(Step::LookForInstalled)
                }
                Stage::Starting(_) => return None,
            },
            Step::LookForInstalled if self.installed.is_some() => {
                next.shared = self.installed;
                start.is_outermost.then_some(Step::SetReady)
            }
            Step::LookForInstalled => Some(Step::Make),
            Step::Make => {
                next.made += 1;
                start.fresh = next.made;
                Some(Step::Install)
            }
            Step::Install => {
                start.has_won = self.installed.is_none() || self.rules == Rules::InstallsAlways;
                if start.has_won {
                    next.installed = Some(start.fresh);
                }
                Some(Step::Use)
            }
            Step::Use => {
                next.shared = self.installed;
                Some(Step::Announce)
            }
            Step::Announce => {
                if start.has_won {
                    next.announced.push(start.fresh);
                }
                start.is_outermost.then_some(Step::SetReady)
            }
            Step::SetReady => {
                next.stage = Stage::Ready;
                None
            }
        };
        match go_on {
            Some(step) => next.threads[thread].push(Start { step, ..start }),
            // The call that wanted the start records.
            None => assert!(
                next.shared.is_some() && next.shared == next.installed,
                "a call found no shared memory"
            ),
        }
        Some(next)
    }

    /// The world after a trap in a thread's start.
    fn after_trap(&self, thread: usize) -> Option<World> {
        let mut next = self.clone();
        next.traps_left = self.traps_left.checked_sub(1)?;
        (!self.threads[thread].is_empty()).then(|| next.threads[thread].push(BEGIN))?;
        Some(next)
    }
}

/// Goes every way; gives the number of worlds that were met.
fn explore(rules: Rules) -> usize {
    let (mut seen, mut open) = (HashSet::new(), vec![World::of(rules)]);
    while let Some(world) = open.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        let steps: Vec<World> = (0..2).filter_map(|thread| world.after(thread)).collect();
        if steps.is_empty() {
            assert!(world.threads.iter().all(Vec::is_empty), "somebody waits for ever");
            assert_eq!(world.announced, [world.installed.unwrap()], "announced is not what is installed");
            assert!(world.stage == Stage::Ready);
        }
        open.extend(steps);
        open.extend((0..2).filter_map(|thread| world.after_trap(thread)));
    }
    seen.len()
}

#[test]
fn one_shared_memory_is_installed_and_announced_whoever_interrupts_whom() {
    let worlds = explore(Rules::AsWritten);
    assert!(worlds > 500, "{worlds} worlds are not all");
}

#[test]
#[should_panic(expected = "somebody waits for ever")]
fn the_model_detects_a_handler_that_waits_for_its_own_thread() {
    explore(Rules::HandlerWaits);
}

#[test]
#[should_panic]
fn the_model_detects_a_start_that_replaces_another() {
    explore(Rules::InstallsAlways);
}
