//! Marks as a program's ring has them, against a process whose descriptors do not change.

use crate::channels::ChannelReader;
use crate::marks::{Counted, Marks, Scope};
use crate::shared_memory::SharedMemory;
use mallow_profile::{Regions, StackId, ThreadIndex};
use mallow_wire::event::{Mark, TEXT_BYTES};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

/// A process that does nothing, with the descriptors 0, 1 and 2, and its marks.
struct Program {
    child: Child,
    memory: SharedMemory,
    marks: Marks,
    regions: Regions,
    readers: Vec<ChannelReader>,
}

const THREAD: ThreadIndex = ThreadIndex(0);

impl Program {
    fn new() -> Program {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Once it echoes, the loader has closed the last library that it opened.
        child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Program {
            marks: Marks::new(child.id(), Counted::default()),
            child,
            memory: SharedMemory::new(1),
            regions: Regions::default(),
            readers: vec![ChannelReader { thread: THREAD, taken_serial: 1, tail: 0, tsc: 0 }],
        }
    }

    /// Writes a mark and reads it; it is answered at once, because nobody else could change what is left.
    fn mark(&mut self, what: Mark, name: &str) {
        let mut text = [0u8; TEXT_BYTES];
        text[..name.len()].copy_from_slice(name.as_bytes());
        self.marks.text(THREAD, text);
        self.marks.mark(THREAD, what as u32, 0, &mut self.regions);
        let mapping = self.memory.map();
        let answered = || mapping.channel(0).marks_answered.load(Ordering::Relaxed);
        let before = answered();
        self.marks.answer(&mapping, &self.readers, &mut self.regions);
        assert_eq!(answered(), before + 1);
    }

    /// A value that a runtime tells on a thread.
    fn tell(&mut self, thread: ThreadIndex, name: &str, value: u64) {
        let mut text = [0u8; TEXT_BYTES];
        text[..name.len()].copy_from_slice(name.as_bytes());
        self.marks.text(thread, text);
        self.marks.mark(thread, Mark::Reported as u32, value, &mut self.regions);
    }

    /// The names of the runs so far, and who opened what they left.
    fn left(&self) -> Vec<(&str, &[Option<StackId>])> {
        let runs = self.marks.runs.iter();
        runs.map(|run| (run.totals.name.as_str(), run.descriptors.as_slice())).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_descriptor_belongs_to_the_regions_in_which_it_was_opened_in_whichever_order_they_end() {
    let mut program = Program::new();
    program.mark(Mark::Begin, "a");
    // Closed and opened again: only its opener tells.
    program.marks.opened(0, StackId(4));
    program.mark(Mark::Begin, "b");
    program.marks.opened(1, StackId(5));
    program.mark(Mark::End, "a");
    program.marks.opened(2, StackId(6));
    program.mark(Mark::End, "b");
    assert_eq!(
        program.left(),
        [
            ("a", [Some(StackId(4)), Some(StackId(5))].as_slice()),
            ("b", [Some(StackId(5)), Some(StackId(6))].as_slice()),
        ]
    );
}

#[test]
fn a_reported_value_belongs_to_the_last_run_of_its_thread() {
    let mut program = Program::new();
    program.tell(THREAD, "early", 1);
    program.mark(Mark::Begin, "a");
    program.tell(THREAD, "inside", 2);
    program.mark(Mark::End, "a");
    program.tell(THREAD, "objects", 3);
    program.mark(Mark::Begin, "b");
    program.tell(ThreadIndex(7), "strange", 4);
    program.mark(Mark::End, "b");
    program.tell(THREAD, "objects", 5);
    let told: Vec<(&str, Vec<(&str, u64)>)> = program
        .marks
        .runs
        .iter()
        .map(|run| {
            let told = run.told.iter().map(|(name, value)| (name.as_str(), *value));
            (run.totals.name.as_str(), told.collect())
        })
        .collect();
    assert_eq!(told, [("a", vec![("objects", 3)]), ("b", vec![("objects", 5)])]);
}

#[test]
fn stacks_are_wanted_while_a_region_is_open_and_always_where_more_than_regions_counts() {
    for (scope, outside) in [(Scope::Regions, 1), (Scope::Processes, 0), (Scope::FromMain, 0)] {
        let mut program = Program::new();
        program.marks = Marks::new(program.child.id(), Counted { scope, ..Counted::default() });
        let mapping = program.memory.map();
        let is_without = || mapping.header().order.without_stacks.load(Ordering::Relaxed);
        program.marks.want_stacks(&mapping, &program.regions);
        assert_eq!(is_without(), outside, "{scope:?}");
        for (what, name, wanted) in [
            (Mark::Begin, "a", 0),
            (Mark::Begin, "b", 0),
            (Mark::End, "a", 0),
            (Mark::Settle, "", 0),
            (Mark::End, "b", outside),
            (Mark::End, "stray", outside),
        ] {
            program.mark(what, name);
            assert_eq!(is_without(), wanted, "{scope:?} {what:?} {name}");
        }
    }
}
