//! Every way in which threads, their allocator and the collector can take turns, for programs that pass two addresses from hand to
//! hand: what the collector reads of each must be the truth in order.
//!
//! Each hooked call is three steps, as in the recorder: for an allocation the allocator's answer, the stamp, the record; for
//! a free the stamp, the record, the allocator. A pass of the collector is two: it notes the time (and beats), then takes what is
//! stamped up to then. Memory is sequentially consistent here; on x86 the exchange is a full fence, and loads are not
//! reordered, so that what happened before a look is seen by it.

use super::*;
use mallow_wire::shared::next_order;

/// What a thread does, one after the other. An allocation takes the first address that is free, a free waits for one that the
/// call which allocated it has returned.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Alloc,
    Free,
}

#[derive(Clone)]
struct Actor {
    calls: &'static [Call],
    call: usize,
    step: usize,
    /// What the thread knows of the order.
    seen: u64,
    left: u32,
    /// The stamp of the call under way, and its address.
    stamp: u64,
    block: usize,
    /// Records: stamp (0 for none), address, and which use of it begins or ends.
    ring: Vec<(u64, usize, u32)>,
    taken: usize,
    before_tsc: u64,
}

/// An address.
#[derive(Clone, Copy, Default)]
struct Block {
    /// How often it was taken.
    turns: u32,
    is_live: bool,
    /// Whether the call that allocated it has returned, and nobody has begun to free it.
    is_handed: bool,
}

#[derive(Clone)]
struct World {
    threads: Vec<Actor>,
    order: u64,
    time: u64,
    blocks: [Block; 2],
    passes_left: u32,
    until: Option<u64>,
    /// Of each address.
    read: [Vec<u32>; 2],
    stamped: u32,
}

impl World {
    fn of(threads: &[&'static [Call]], passes: u32) -> World {
        let actor = |calls: &&'static [Call]| Actor {
            calls,
            call: 0,
            step: 0,
            seen: 0,
            left: 0,
            stamp: 0,
            block: 0,
            ring: Vec::new(),
            taken: 0,
            before_tsc: 0,
        };
        World {
            threads: threads.iter().map(actor).collect(),
            order: ORDER_BUSY,
            time: 100,
            blocks: Default::default(),
            passes_left: passes,
            until: None,
            read: Default::default(),
            stamped: 0,
        }
    }

    /// The address that the thread's next step is about; none when it has to wait, or has done everything.
    fn block_of_next(&self, thread: usize) -> Option<usize> {
        let actor = &self.threads[thread];
        match (actor.calls.get(actor.call)?, actor.step) {
            (Call::Alloc, 0) => self.blocks.iter().position(|block| !block.is_live),
            (Call::Free, 0) => self.blocks.iter().position(|block| block.is_handed),
            _ => Some(actor.block),
        }
    }

    fn step(&mut self, thread: usize, at: usize) {
        let actor = &self.threads[thread];
        let call = actor.calls[actor.call];
        let block = &mut self.blocks[at];
        match (call, actor.step) {
            (Call::Alloc, 0) => *block = Block { turns: block.turns + 1, is_live: true, is_handed: false },
            (Call::Alloc, 1) | (Call::Free, 0) => {
                block.is_handed = false;
                self.stamp(thread);
            }
            (Call::Alloc, 2) | (Call::Free, 1) => {
                block.is_handed = call == Call::Alloc;
                let turn = block.turns * 2 + (call == Call::Free) as u32;
                let stamp = actor.stamp;
                self.threads[thread].ring.push((stamp, at, turn));
            }
            _ => block.is_live = false,
        }
        let actor = &mut self.threads[thread];
        actor.block = at;
        actor.step += 1;
        if actor.step == 3 {
            (actor.step, actor.call) = (0, actor.call + 1);
        }
    }

    fn stamp(&mut self, thread: usize) {
        let actor = &mut self.threads[thread];
        let stamps = Stamps {
            seen: AtomicU64::new(actor.seen),
            left: AtomicU32::new(actor.left),
            own: thread as u32 + 1,
        };
        let order = AtomicU64::new(self.order);
        self.time += 1;
        actor.stamp = if stamps.goes_without(&order) { 0 } else { self.time };
        self.stamped += (actor.stamp != 0) as u32;
        self.order = order.into_inner();
        (actor.seen, actor.left) = (stamps.seen.into_inner(), stamps.left.into_inner());
    }

    fn pass(&mut self) {
        match self.until.take() {
            None => {
                if order_owner(self.order) != ORDER_MANY {
                    self.order = next_order(self.order, true);
                }
                self.time += 1;
                self.until = Some(self.time);
            }
            Some(until) => {
                self.passes_left -= 1;
                self.take(until);
            }
        }
    }

    /// Takes what is stamped up to a moment, in the order of the stamps.
    fn take(&mut self, until: u64) {
        loop {
            let next = self.threads.iter().enumerate().filter_map(|(i, actor)| {
                let (stamp, block, turn) = *actor.ring.get(actor.taken)?;
                Some((if stamp == 0 { actor.before_tsc } else { stamp }, i, block, turn))
            });
            let Some((tsc, i, block, turn)) = next.min().filter(|(tsc, ..)| *tsc <= until) else { return };
            self.read[block].push(turn);
            self.threads[i].taken += 1;
            self.threads[i].before_tsc = tsc;
        }
    }

    /// Goes every way from here.
    fn explore(&self, check: &mut dyn FnMut(&World)) {
        let mut is_over = true;
        for thread in 0..self.threads.len() {
            if let Some(block) = self.block_of_next(thread) {
                is_over = false;
                let mut next = self.clone();
                next.step(thread, block);
                next.explore(check);
            }
        }
        if self.passes_left > 0 {
            is_over = false;
            let mut next = self.clone();
            next.pass();
            next.explore(check);
        }
        if is_over {
            let mut last = self.clone();
            last.take(u64::MAX);
            check(&last);
        }
    }
}

/// The turns of each address are read one after the other, whoever took them; gives how many ways there are, and how many records
/// went without a stamp in all of them.
fn assert_in_order(threads: &[&'static [Call]], passes: u32) -> (u64, u64) {
    let (mut ways, mut unstamped) = (0u64, 0u64);
    World::of(threads, passes).explore(&mut |world| {
        let records: usize = world.threads.iter().map(|actor| actor.ring.len()).sum();
        assert_eq!(world.read.iter().map(Vec::len).sum::<usize>(), records);
        assert!(world.read.iter().all(|turns| turns.is_sorted()), "{:?}", world.read);
        ways += 1;
        unstamped += u64::from(records as u32 - world.stamped);
    });
    (ways, unstamped)
}

const PAIR: &[Call] = &[Call::Alloc, Call::Free];
const PAIRS: &[Call] = &[Call::Alloc, Call::Free, Call::Alloc, Call::Free];
const ALLOCS: &[Call] = &[Call::Alloc, Call::Alloc];
const FREES: &[Call] = &[Call::Free, Call::Free];

#[test]
fn one_thread_stamps_only_behind_beats() {
    assert_eq!(assert_in_order(&[PAIRS], 0), (1, 3));
    assert_in_order(&[PAIRS], 2);
}

#[test]
fn addresses_passed_between_threads_are_read_in_order() {
    let plans: [([&'static [Call]; 2], u32); 5] = [
        ([PAIRS, PAIR], 0),
        ([PAIR, PAIR], 1),
        ([PAIR, PAIR], 2),
        ([ALLOCS, FREES], 2),
        ([FREES, ALLOCS], 2),
    ];
    for (threads, passes) in plans {
        let (ways, unstamped) = assert_in_order(&threads, passes);
        assert!(ways > 500 && unstamped > 100, "{ways} ways, {unstamped} records without a stamp");
    }
}

#[test]
fn a_thread_that_is_not_busy_stamps_every_event() {
    let mut world = World::of(&[PAIRS], 0);
    world.order = 0;
    world.explore(&mut |world| assert_eq!(world.stamped, 4));
}

/// The model can fail: with a thread that never takes the order away from another.
#[test]
#[should_panic(expected = "[")]
fn the_model_detects_a_thread_that_does_not_set_the_order() {
    let mut world = World::of(&[PAIRS, PAIR], 0);
    // The second thread believes to be the first.
    world.order = with_order_owner(ORDER_BUSY, 1);
    (world.threads[0].seen, world.threads[0].left) = (world.order, UNSTAMPED_MAX);
    (world.threads[1].seen, world.threads[1].left) = (world.order, UNSTAMPED_MAX);
    world.explore(&mut |world| assert!(world.read.iter().all(|turns| turns.is_sorted()), "{:?}", world.read));
}
