//! An expression held against a profile: what each stack, process and thread says of its tests.

use super::parse::REQUESTS;
use super::{Expression, Test, TextTest};
use mallow_profile::Requests;
use mallow_stacks::{ProcessIndex, StackId, Stacks};

/// The names of a process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessName<'a> {
    /// Its id.
    pub pid: u32,
    /// Its command line, or the path of its program.
    pub command: &'a str,
}

/// The names of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadName<'a> {
    /// Its id.
    pub tid: u32,
    /// Its name; may be empty.
    pub name: &'a str,
}

/// Which stacks, processes, threads and sizes an expression matches. It owns its data, so that it outlives the
/// profile.
#[derive(Clone, Debug)]
pub struct Matching {
    expression: Expression,
    /// For each stack node the tests that hold at it or outwards of it.
    of_stacks: Vec<u64>,
    /// The same of the calls of each process that have no stack.
    of_stackless: Vec<u64>,
    of_processes: Vec<u64>,
    sizes: u64,
}

impl Matching {
    /// Evaluates an expression for stacks and processes.
    pub fn of<'a>(
        expression: &Expression,
        stacks: &Stacks,
        processes: impl IntoIterator<Item = ProcessName<'a>>,
    ) -> Matching {
        let bits = |holds: &dyn Fn(&Test) -> bool| {
            let held = expression.tests.iter().enumerate().filter(|(_, test)| holds(test));
            held.fold(0_u64, |bits, (number, _)| bits | 1 << number)
        };
        let locations: Vec<u64> = stacks
            .locations
            .iter()
            .map(|location| {
                bits(&|test| match test {
                    Test::Frame(field, text) => location.frames.iter().any(|frame| field.holds(text, frame)),
                    _ => false,
                })
            })
            .collect();
        let mut of_stacks: Vec<u64> = Vec::with_capacity(stacks.nodes.len());
        for node in &stacks.nodes {
            let outer = node.parent.map_or(0, |parent| of_stacks[parent.0 as usize]);
            of_stacks.push(outer | locations[node.location.0 as usize]);
        }
        let of_process = |process: ProcessName<'_>| {
            bits(&|test| matches!(test, Test::Process(text) if is_process(text, process)))
        };
        let of_processes: Vec<u64> = processes.into_iter().map(of_process).collect();
        Matching {
            of_stacks,
            of_stackless: vec![0; of_processes.len()],
            of_processes,
            sizes: bits(&|test| matches!(test, Test::Size(..))),
            expression: expression.clone(),
        }
    }

    /// The same, with the requests of a profile's stacks.
    #[must_use]
    pub fn with_requests(mut self, requests: &Requests) -> Matching {
        if !self.expression.asks_for_requests() {
            return self;
        }
        for process in (0..self.of_processes.len() as u32).map(ProcessIndex) {
            for (stack, totals) in requests.sites(process) {
                let made = |text: &TextTest| {
                    let made = |request| totals.of(request).allocations > 0;
                    REQUESTS.iter().any(|(word, request)| made(*request) && text.holds(word))
                };
                let bits = self.bits(|test| matches!(test, Test::Request(text) if made(text)));
                let of_stack = match stack {
                    Some(stack) => self.of_stacks.get_mut(stack.0 as usize),
                    None => self.of_stackless.get_mut(process.0 as usize),
                };
                if let Some(of_stack) = of_stack {
                    *of_stack |= bits;
                }
            }
        }
        self
    }

    /// Returns which tests a thread passes, for [`Matching::wants`].
    pub fn thread(&self, thread: ThreadName<'_>) -> u64 {
        self.bits(|test| matches!(test, Test::Thread(text) if is_thread(text, thread)))
    }

    /// Returns whether something with a stack is wanted, that is of a process and a thread and has a size, where they matter.
    #[inline]
    pub fn wants(&self, process: ProcessIndex, stack: Option<StackId>, thread: u64, size: u64) -> bool {
        let of_stack = match stack {
            Some(stack) => self.of_stacks.get(stack.0 as usize),
            None => self.of_stackless.get(process.0 as usize),
        };
        let of_stack = of_stack.copied().unwrap_or(0);
        let of_process = self.of_processes.get(process.0 as usize).copied().unwrap_or(0);
        let of_size = if self.sizes == 0 { 0 } else { self.of_size(size) };
        self.expression.root.holds(of_stack | of_process | thread | of_size)
    }

    fn of_size(&self, size: u64) -> u64 {
        self.bits(|test| matches!(test, Test::Size(comparison, than) if comparison.holds(size, *than)))
    }

    /// The tests that hold, as bits.
    fn bits(&self, holds: impl Fn(&Test) -> bool) -> u64 {
        let held = self.expression.tests.iter().enumerate().filter(|(_, test)| holds(test));
        held.fold(0, |bits, (number, _)| bits | 1 << number)
    }
}

/// A part of the command line; the whole name of the program, or the id.
fn is_process(test: &TextTest, process: ProcessName<'_>) -> bool {
    let program = process.command.split(' ').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    test.holds(process.command) || test.holds(name) || is_id(test, process.pid)
}

fn is_thread(test: &TextTest, thread: ThreadName<'_>) -> bool {
    test.holds(thread.name) || is_id(test, thread.tid)
}

/// Ids are whole or not at all: a part of one is another one's too.
fn is_id(test: &TextTest, id: u32) -> bool {
    match test {
        TextTest::Has(text) | TextTest::Is(text) => text.parse() == Ok(id),
        TextTest::Matches(_) => false,
    }
}
