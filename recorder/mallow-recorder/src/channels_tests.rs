//! Every way in which threads that take channels, one of them with the id of one that has ended, and passes of the collector can take
//! turns: a channel is given back only when nobody alive owns it.
//!
//! The collector's part is that of `mallow-collect`'s `channels.rs`; here it thinks every ring read up. States that were seen before are
//! not gone through again.

use std::collections::HashSet;

const NOBODY: u32 = 0;

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Place {
    is_owned: bool,
    tid: u32,
    serial: u32,
}

/// A thread's way: take, sign with its serial number and its id, live, end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Taker {
    tid: u32,
    /// Begins when this taker has ended: the kernel gives its id again.
    after: Option<usize>,
    step: usize,
    channel: usize,
    serial: u32,
}

/// One look at a channel, as far as it has come.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Reading {
    tid: u32,
    serial: u32,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    channels: [Place; 2],
    takers: Vec<Taker>,
    serials: u32,
    /// The collector's looks, and its next step.
    looks: [Reading; 2],
    step: usize,
    passes_left: u32,
    /// Whether a channel is signed with the serial number first, and looked at in the other order.
    signs_last: bool,
}

const ENDED: usize = 4;

impl World {
    fn of(signs_last: bool) -> World {
        let taker = |tid, after| Taker { tid, after, step: 0, channel: 0, serial: 0 };
        World {
            channels: Default::default(),
            takers: vec![taker(1, None), taker(2, None), taker(1, Some(0))],
            serials: 0,
            looks: Default::default(),
            step: 0,
            passes_left: 2,
            signs_last,
        }
    }

    fn lives(&self, tid: u32) -> bool {
        let is_it = |taker: &Taker| taker.tid == tid && (1..ENDED).contains(&taker.step);
        self.takers.iter().any(is_it)
    }

    /// The world after a taker's next step; none when it has to wait or has ended.
    fn after_taker(&self, index: usize) -> Option<World> {
        let taker = self.takers[index];
        if taker.after.is_some_and(|before| self.takers[before].step < ENDED) {
            return None;
        }
        let mut next = self.clone();
        let own = &mut next.takers[index];
        own.step += 1;
        match (taker.step, self.signs_last) {
            (0, _) => {
                own.channel = self.channels.iter().position(|channel| !channel.is_owned)?;
                own.serial = self.serials + 1;
                next.serials += 1;
                next.channels[next.takers[index].channel].is_owned = true;
            }
            (1, true) | (2, false) => next.channels[taker.channel].serial = taker.serial,
            (1, false) | (2, true) => next.channels[taker.channel].tid = taker.tid,
            (3, _) => {}
            _ => return None,
        }
        Some(next)
    }

    /// The world after the collector's next step. It looks at each channel in two steps, then gives back.
    fn after_collector(&self) -> Option<World> {
        if self.passes_left == 0 {
            return None;
        }
        let mut next = self.clone();
        next.step += 1;
        if self.step < 4 {
            let (index, part) = (self.step / 2, self.step % 2);
            let (channel, look) = (self.channels[index], &mut next.looks[index]);
            if part == 0 {
                *look = Reading::default();
            }
            if (part == 0) == self.signs_last {
                look.tid = if channel.is_owned { channel.tid } else { NOBODY };
            } else {
                look.serial = channel.serial;
            }
            return Some(next);
        }
        let index = self.step - 4;
        let look = self.looks[index];
        let same = self.looks.iter().filter(|other| other.tid == look.tid);
        let newest = same.map(|other| other.serial).max().unwrap_or_default();
        if look.tid != NOBODY && (newest > look.serial || !self.lives(look.tid)) {
            let owner = |taker: &Taker| taker.channel == index && (1..ENDED).contains(&taker.step);
            assert!(!self.takers.iter().any(owner), "a channel was given back while its owner lives");
            next.channels[index] =
                Place { is_owned: false, tid: NOBODY, serial: self.channels[index].serial };
        }
        if next.step == 6 {
            (next.step, next.passes_left) = (0, next.passes_left - 1);
        }
        Some(next)
    }
}

/// Goes every way; gives the number of worlds that were met.
fn explore(first: World) -> usize {
    let (mut seen, mut open) = (HashSet::new(), vec![first]);
    while let Some(world) = open.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        open.extend((0..world.takers.len()).filter_map(|index| world.after_taker(index)));
        open.extend(world.after_collector());
    }
    seen.len()
}

#[test]
fn a_channel_is_released_when_its_owner_has_ended() {
    let worlds = explore(World::of(true));
    assert!(worlds > 1_000, "{worlds} worlds are not all");
}

/// A thread that signs with its id first stands for a moment behind the serial number of the channel's last owner.
#[test]
#[should_panic(expected = "while its owner lives")]
fn the_model_detects_a_thread_that_writes_its_id_first() {
    explore(World::of(false));
}
