//! What a collector waits for between its passes.

use super::*;
use crate::command_lines::CommandLines;
use crate::peer::Peer;
use crate::shared_memory::SharedMemory;
use crate::sink::NoSink;
use mallow_wire::event::{self, Kind};
use mallow_wire::shared::RING_WORDS;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command};

/// A command without a recorder.
struct Plain {
    child: Child,
    peer: Peer,
    ended: bool,
}

impl Target for Plain {
    fn is_interrupted(&mut self) -> bool {
        false
    }

    fn is_overdue(&mut self) -> bool {
        false
    }

    fn has_ended(&mut self) -> bool {
        self.ended |= self.child.try_wait().unwrap().is_some();
        self.ended
    }

    fn first(&self) -> u32 {
        self.peer.pid
    }

    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.peer.pidfd.as_ref().filter(|_| !self.ended).map(OwnedFd::as_fd)
    }

    fn registered(&mut self, _pid: u32) {}

    fn is_own(&self, _pid: u32) -> bool {
        false
    }

    fn own_exit(&mut self, _pid: u32) -> Option<Exit> {
        None
    }
}

/// Sleeps for a minute unless it is woken.
struct Sleeper<'a> {
    /// What happens in each pause that can be ended.
    happenings: Vec<Box<dyn FnMut() + 'a>>,
    /// Whether it was.
    woken: Vec<bool>,
    /// After how many of them there was a pause that could not.
    in_vain: Vec<usize>,
}

impl Observer for Sleeper<'_> {
    fn pause(&mut self, _longest: Duration, watched: &mut [PollFd<'_>]) -> bool {
        // One of them is the bell.
        if watched.len() < 2 {
            self.in_vain.push(self.woken.len());
        }
        if watched.len() < 2 || self.happenings.is_empty() {
            return sleep_until_ready(Duration::from_millis(1), watched);
        }
        self.happenings.remove(0)();
        let is_woken = sleep_until_ready(Duration::from_secs(60), watched);
        self.woken.push(is_woken);
        is_woken
    }
}

fn connect_to(path: &str) {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
}

fn sleeping() -> (Child, u32) {
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = child.id();
    (child, pid)
}

/// A process that is recorded, and does nothing.
fn take_in_sleeping(collector: &mut Collector<NoSink>) -> (Child, u32, SharedMemory) {
    let (child, pid) = sleeping();
    let memory = SharedMemory::new(1);
    let registration =
        Registration { memory: memory.handed_over(), peer: Peer::of_pid(pid), command: "sleep".into() };
    collector.take_in(registration).unwrap();
    (child, pid, memory)
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Nobody's end, and nobody's start, waits for a collector that sleeps.
#[test]
fn who_comes_and_who_ends_ends_a_pause() {
    let wanted = Wanted { events: false, threads: false, regions: None, exited: true, own: false };
    let session = Session::open(CommandLines::Whole).unwrap();
    let path = session.variable().rsplit(':').next().unwrap().to_owned();
    let mut collector = Collector::new(Some(session), Clock::start(), NoSink, wanted);
    let (child, started) = sleeping();
    let (_other, recorded, _memory) = take_in_sleeping(&mut collector);
    let happenings: Vec<Box<dyn FnMut()>> =
        vec![Box::new(|| connect_to(&path)), Box::new(|| kill(recorded)), Box::new(|| kill(started))];
    let mut sleeper = Sleeper { happenings, woken: Vec::new(), in_vain: Vec::new() };
    let mut target = Plain { child, peer: Peer::of_pid(started), ended: false };
    collector.run(&mut target, &mut sleeper).unwrap();
    assert_eq!(sleeper.woken, [true; 3]);
    // Whoever connected and said nothing keeps nobody awake.
    assert_eq!(sleeper.in_vain, [1]);
    assert_eq!(collector.exited.len(), 1);
}

/// Notes what each pause watches, which rings end, and kills the command in the end.
struct Rung<'a> {
    ring: &'a dyn Fn(),
    ring_with_much: &'a dyn Fn(),
    end: &'a dyn Fn(),
    /// Whether a ring of the process could end it, and did.
    pauses: Vec<(bool, bool)>,
}

impl Observer for Rung<'_> {
    fn pause(&mut self, _longest: Duration, watched: &mut [PollFd<'_>]) -> bool {
        let is_heard = watched.len() == 3;
        match self.pauses.len() {
            0..4 if is_heard => (self.ring)(),
            4 => (self.ring_with_much)(),
            6 => (self.end)(),
            _ => {}
        }
        let is_rung = is_heard && self.pauses.len() != 5;
        let longest = if is_rung { Duration::from_secs(60) } else { Duration::from_millis(1) };
        let is_ready = sleep_until_ready(longest, watched);
        self.pauses.push((is_heard, is_ready));
        is_ready
    }
}

#[test]
fn who_rings_ends_a_pause_and_is_not_heard_in_the_next_if_there_was_little_to_read() {
    let wanted = Wanted { events: false, threads: false, regions: None, exited: true, own: false };
    let mut collector = Collector::new(None, Clock::start(), NoSink, wanted);
    let (child, started) = sleeping();
    let (_other, recorded, memory) = take_in_sleeping(&mut collector);
    let mapping = memory.map();
    let doorbell = &mapping.header().doorbell;
    let ring = || {
        assert_eq!(doorbell.is_wanted.load(Ordering::SeqCst), 1, "a thread rings only if that is wanted");
        doorbell.rung.fetch_add(1, Ordering::SeqCst);
        let _ = rustix::thread::futex::wake(&doorbell.rung, rustix::thread::futex::Flags::empty(), 1);
    };
    let end = || [recorded, started].into_iter().for_each(kill);
    let ring_with_much = || {
        memory.push(0, &vec![event::word0(Kind::Free, 0x1000, 0); RING_WORDS / 2]);
        ring();
    };
    let mut rung = Rung { ring: &ring, ring_with_much: &ring_with_much, end: &end, pauses: Vec::new() };
    let mut target = Plain { child, peer: Peer::of_pid(started), ended: false };
    collector.run(&mut target, &mut rung).unwrap();
    let in_vain = [(true, true), (false, false)];
    assert_eq!(rung.pauses[..4], in_vain.repeat(2)[..]);
    assert_eq!(rung.pauses[4..6], [(true, true), (true, false)], "there was much to read");
    assert_eq!(collector.exited.len(), 1);
}
