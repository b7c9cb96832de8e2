//! A program that lies to the mallow that records it: `hostile KIND SECONDS`.
//!
//! It has what any recorded program has, the session's token and the shared memory, and writes there what no recorder does. Its own memory stays
//! small. Before it ends it says so on stdout.

mod memory;

use mallow_wire::event::{self, Kind, Mark};
use mallow_wire::script::{
    CodeRecord, RECORD_CHAIN, RECORD_CODE, RUNTIME_CPYTHON, RUNTIME_HOTSPOT, pair_key, script_key,
};
use mallow_wire::shared::*;
use memory::{Memory, Session, own_memory};
use std::mem::offset_of;
use std::time::{Duration, Instant};

/// What it does until its time is up.
type Attack = fn(&mut Attacker);

const KINDS: &[(&str, Attack)] = &[
    ("honest", honest),
    ("scribble", scribble),
    ("blocks", blocks),
    ("nodes", nodes),
    ("pairs", pairs),
    ("threads", threads),
    ("hellos", hellos),
    ("modules", modules),
    ("codes", codes),
    ("marks", marks),
];

struct Attacker {
    session: Session,
    until: Instant,
    random: u64,
}

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let kind = words.get(1).and_then(|word| KINDS.iter().find(|(name, _)| name == word));
    let seconds = words.get(2).and_then(|word| word.parse().ok());
    let (Some((_, attack)), Some(seconds), Some(session)) = (kind, seconds, Session::find()) else {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        eprintln!("hostile KIND SECONDS, under mallow; kinds: {}", names.join(", "));
        return std::process::ExitCode::from(2);
    };
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    attack(&mut Attacker { session, until, random: 0x9e37_79b9_7f4a_7c15 });
    println!("ends");
    std::process::ExitCode::SUCCESS
}

impl Attacker {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// A memory of our own making, which takes the place of the real one.
    fn registered(&self, channels: usize) -> Memory {
        let memory = Memory::new(channels);
        self.session.register(memory.fd());
        memory
    }
}

/// As much as any program does.
fn honest(attacker: &mut Attacker) {
    while !attacker.is_over() {
        let blocks: Vec<Vec<u8>> = (0..1000).map(|size| Vec::with_capacity(size % 100 + 1)).collect();
        drop(std::hint::black_box(blocks));
    }
}

/// Writes over what the real recorder shares: each word of what stands before the logs and one of each page behind it, then words by chance, and at last a
/// ring that holds no record.
fn scribble(attacker: &mut Attacker) {
    const RINGS: usize = 64;
    const PAGE: usize = 4096;
    const NO_RECORD: u64 = 0xdead_beef_dead_bee0;
    let Some(memory) = own_memory() else { return };
    // Until it has been looked at for the first time.
    std::thread::sleep(Duration::from_millis(100));
    let bytes = memory.bytes().min(RINGS_OFFSET + RINGS * RING_BYTES);
    let first = CHANNELS_OFFSET + RINGS * size_of::<Channel>();
    for at in (0..first).step_by(8).chain((first..bytes).step_by(PAGE)) {
        memory.put(at, attacker.next());
    }
    while !attacker.is_over() {
        let value = attacker.next() >> (attacker.next() % 64);
        let at = match attacker.next() % 4 {
            0 => attacker.next() as usize % size_of::<Header>(),
            1 => CHANNELS_OFFSET + attacker.next() as usize % (RINGS * size_of::<Channel>()),
            2 => {
                RINGS_OFFSET + attacker.next() as usize % RINGS * RING_BYTES + attacker.next() as usize % PAGE
            }
            _ => attacker.next() as usize % bytes,
        };
        memory.put(at / 8 * 8, value);
    }
    (0..RING_WORDS).for_each(|word| memory.put(RINGS_OFFSET + word * 8, NO_RECORD));
    memory.put32(offset_of!(Header, channels_high), 1);
    memory.put(CHANNELS_OFFSET + offset_of!(Channel, head), 1 << 62);
}

fn alloc(address: u64, node: u32) -> [u64; 2] {
    [event::word0(Kind::Alloc, address, 16), event::word1(16, node)]
}

/// Blocks that nobody has allocated, each in a megabyte of its own.
fn blocks(attacker: &mut Attacker) {
    let memory = attacker.registered(1);
    let mut at = 0u64;
    while !attacker.is_over() || !memory.is_left() {
        at += 1;
        memory.publish(0, &alloc((at << 20) & ((1 << 47) - 1), NODE_ROOT));
    }
}

/// One event whose stack is all nodes that there are.
fn nodes(attacker: &mut Attacker) {
    let memory = attacker.registered(1);
    for id in 0..NODE_COUNT as u32 {
        memory.node(id, node_key(0x1000 + u64::from(id), false, 0), u64::from(id) + 2);
    }
    memory.publish(0, &alloc(0x1000, 0));
    while !attacker.is_over() || !memory.is_left() {
        let id = attacker.next() as u32 % NODE_COUNT as u32;
        memory.publish(0, &alloc(0x1000, id));
    }
}

/// Pairs of deep stacks, each another one, and more than are read in a second.
fn pairs(attacker: &mut Attacker) {
    const DEEP: u32 = 30_000;
    const PAIRS: u32 = 5000;
    let memory = attacker.registered(1);
    for id in 0..DEEP {
        memory.node(id, node_key(0x1000 + u64::from(id), false, 0), u64::from(id) + 2);
    }
    let mut pair = DEEP;
    while !attacker.is_over() || pair < DEEP + PAIRS {
        pair = if pair + 1 < NODE_COUNT as u32 { pair + 1 } else { DEEP };
        memory.node(pair, pair_key(attacker.next() as u32 % DEEP), attacker.next() % u64::from(DEEP) + 1);
        memory.publish(0, &alloc(0x1000, pair));
    }
}

/// Channels that change hands all the time.
fn threads(attacker: &mut Attacker) {
    let memory = attacker.registered(CHANNEL_COUNT_MAX);
    let mut serial = 1;
    while !attacker.is_over() {
        serial += 1;
        for channel in 0..CHANNEL_COUNT_MAX {
            let at = CHANNELS_OFFSET + channel * size_of::<Channel>();
            memory.put32(at + offset_of!(Channel, tid), std::process::id());
            memory.put(at + offset_of!(Channel, taken_serial), serial);
        }
    }
}

/// Registrations, right ones, wrong ones, and those of children.
fn hellos(attacker: &mut Attacker) {
    let plain = std::fs::File::open("/dev/zero").map(std::os::fd::OwnedFd::from).ok();
    for kind in (0..4).cycle() {
        if attacker.is_over() && kind == 0 {
            return;
        }
        match kind {
            0 => drop(attacker.registered(1)),
            1 => attacker.session.register(plain.as_ref().expect("/dev/zero is there")),
            2 => attacker.session.say(&attacker.random.to_le_bytes().repeat(8)),
            _ => {
                let me = std::env::current_exe().expect("the program has a path");
                let child = std::process::Command::new(me)
                    .args(["honest", "0.001"])
                    .stdout(std::process::Stdio::null())
                    .spawn();
                let _ = child.and_then(|mut child| child.wait());
            }
        }
    }
}

/// Tens of thousands of modules upon each other; then one with a long path, named again in each generation.
fn modules(attacker: &mut Attacker) {
    while !attacker.is_over() {
        for are_many in [true, false] {
            let memory = attacker.registered(1);
            let first_bytes = if are_many { 0 } else { memory.module(0, &[b'/'; 4000], 0, [0, 1 << 46]) };
            let mut at = first_bytes;
            let mut generation = 0;
            while at + 512 < MODULE_LOG_BYTES {
                generation += 1;
                at += if are_many {
                    memory.module(at, b"x", 0, [generation, (1 << 46) - generation])
                } else {
                    memory.module_again(at, 0, generation)
                };
            }
            memory.put(offset_of!(Header, modules_reserved), at as u64);
            for id in 0..60_000u32 {
                memory.node(id, node_key((1 << 45) + u64::from(id), false, 30_000), 0);
                memory.publish(0, &alloc(0x1000, id));
            }
            if !are_many {
                memory.wait_until_left();
            }
        }
    }
}

/// Code whose tables are long, and chains of methods within each other.
fn codes(attacker: &mut Attacker) {
    const LINES: usize = 8 << 20;
    while !attacker.is_over() {
        let memory = attacker.registered(1);
        let fixed = size_of::<CodeRecord>();
        let mut at = memory.code(
            0,
            RUNTIME_CPYTHON,
            RECORD_CODE,
            |put| {
                put(offset_of!(CodeRecord, version), 0x30b);
                put(offset_of!(CodeRecord, code), 1);
                put(offset_of!(CodeRecord, lines_bytes), LINES as u32);
            },
            fixed + LINES,
        );
        for chain in 2..1000u32 {
            // Each stands for a thousand calls of code that is a chain itself.
            at += memory.code(
                at,
                RUNTIME_HOTSPOT,
                RECORD_CHAIN,
                |put| {
                    put(offset_of!(mallow_wire::script::ChainRecord, code), chain);
                    put(offset_of!(mallow_wire::script::ChainRecord, count), 1000);
                    (0..1000).for_each(|frame| {
                        put(size_of::<mallow_wire::script::ChainRecord>() + frame * 8, chain - 1)
                    });
                },
                size_of::<mallow_wire::script::ChainRecord>() + 8000,
            );
        }
        memory.code_reserved(at);
        for id in 0..30_000u32 {
            memory.node(id, script_key(id % 1000 + 1, id, false), u64::from(id) + 2);
        }
        for id in 0..30_000u32 {
            memory.publish(0, &alloc(0x1000, id));
        }
        memory.wait_until_left();
    }
}

/// Marks of a thread that never waits for its answers.
fn marks(attacker: &mut Attacker) {
    let memory = attacker.registered(1);
    let mut number = 0u64;
    while !attacker.is_over() {
        number += 1;
        let text = [event::word0(Kind::Text, number, 0), number];
        let what = [Mark::Begin, Mark::End, Mark::Settle, Mark::Begin][number as usize % 4];
        let mark = [event::word0(Kind::Mark, 0, 0), event::word1(0, what as u32)];
        let opened = [event::word0(Kind::Opened, number, 0), event::word1(0, NODE_ROOT)];
        memory.publish(0, &[text, mark, opened].concat());
    }
}
