//! Names looked up while the program still runs, by a thread that asks for them, mostly another process of low priority.
//!
//! The collector says which addresses are new, once each, and goes on at once. The thread gathers them, so that a module's tables
//! are read for many addresses and not for each, and rests twenty times as long as it worked: a twentieth of a processor at most. What it finds it leaves with whoever resolves (`mallow_symbols::Ahead`), where it is taken or left
//! when the recording ends. `record` does not wait for it: addresses that it has not come to are looked up at the end, all others are checked
//! then against the files as they are.

use crate::collector::Observer;
use crate::module_map::ModuleMap;
use crate::process::TracedProcess;
use mallow_profile::Module;
use mallow_trace::{MappedModule, SymbolKey};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Symbolizes the addresses of one module and caches the results. The addresses are those that `Resolve` gets later.
pub type ResolveAhead = Box<dyn FnMut(&Module, &[u64]) + Send>;

/// The collector's end of the thread.
#[derive(Debug)]
pub(crate) struct Ahead {
    new: Option<Sender<New>>,
    has_ended: Arc<AtomicBool>,
    /// By the process's index: how much of it was sent.
    said: FxHashMap<u32, Said>,
    thread: Option<JoinHandle<()>>,
}

/// New nodes and modules of one process.
#[derive(Debug, Default)]
struct New {
    process: u32,
    modules: Vec<MappedModule>,
    addresses: Vec<SymbolKey>,
}

/// How much of a process was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    modules: usize,
    addresses: usize,
}

/// How long new addresses are collected at least.
const GATHER: Duration = Duration::from_millis(40);
/// How much longer the thread sleeps than it worked.
const REST_FACTOR: u32 = 20;
/// As much stack as a main thread has: parsers recurse into nested inlined calls.
const STACK_BYTES: usize = 8 << 20;

impl Ahead {
    /// Starts the thread; none where there can be no thread more.
    pub(crate) fn start(look_ahead: ResolveAhead) -> Option<Ahead> {
        Ahead::start_with(look_ahead, GATHER, || {})
    }

    /// The same on a thread that does something first, which is done when this returns; addresses are gathered for so long at least.
    pub(crate) fn start_with(
        look_ahead: ResolveAhead,
        gather: Duration,
        first: impl FnOnce() + Send + 'static,
    ) -> Option<Ahead> {
        let (new, news) = channel();
        let (begun, has_begun) = channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let worker = Worker { has_ended: Arc::clone(&has_ended), look_ahead, gather, ..Worker::of(news) };
        let thread = std::thread::Builder::new().name("mallow-names".into()).stack_size(STACK_BYTES);
        let run = move || {
            first();
            let _ = begun.send(());
            worker.run();
        };
        let thread = Some(thread.spawn(run).ok()?);
        has_begun.recv().ok()?;
        Some(Ahead { new: Some(new), has_ended, said: FxHashMap::default(), thread })
    }

    /// Waits until what is being looked up now was found, for whoever would look up the same.
    pub(crate) fn end_and_wait(mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.new = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Observer for Ahead {
    /// Says what is new of a process.
    fn sampled(&mut self, process: &TracedProcess) {
        let (modules, stacks) = (process.modules(), process.stacks());
        let said = self.said.entry(process.index).or_default();
        if stacks.address_count() == said.addresses {
            return;
        }
        let new = New {
            process: process.index,
            modules: modules[said.modules..].to_vec(),
            addresses: stacks.addresses_from(said.addresses).collect(),
        };
        *said = Said { modules: modules.len(), addresses: stacks.address_count() };
        let _ = self.new.as_ref().map(|channel| channel.send(new));
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// The thread's end.
struct Worker {
    news: Receiver<New>,
    has_ended: Arc<AtomicBool>,
    look_ahead: ResolveAhead,
    gather: Duration,
    /// The modules of each process.
    processes: FxHashMap<u32, Vec<MappedModule>>,
    /// The addresses that were looked up, over all processes: most of them run the same libraries.
    known: FxHashSet<(u32, u64)>,
    numbers: FxHashMap<Module, u32>,
}

impl Worker {
    fn of(news: Receiver<New>) -> Worker {
        Worker {
            news,
            has_ended: Arc::default(),
            look_ahead: Box::new(|_, _| {}),
            gather: GATHER,
            processes: FxHashMap::default(),
            known: FxHashSet::default(),
            numbers: FxHashMap::default(),
        }
    }

    fn run(mut self) {
        let mut rest = self.gather;
        while let Some(news) = self.gather(rest) {
            let begun = Instant::now();
            self.look_up(news);
            rest = self.gather.max(begun.elapsed() * REST_FACTOR);
        }
    }

    /// Receives what comes within a time; `None` if nothing will come any more.
    fn gather(&self, rest: Duration) -> Option<Vec<New>> {
        let until = Instant::now() + rest;
        let mut news = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok(new) => news.push(new),
                Err(RecvTimeoutError::Timeout) if news.is_empty() => news.push(self.news.recv().ok()?),
                Err(RecvTimeoutError::Timeout) => return Some(news),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn look_up(&mut self, news: Vec<New>) {
        for (module, svmas) in self.wanted(news) {
            if self.has_ended.load(Ordering::Relaxed) {
                return;
            }
            (self.look_ahead)(&module, &svmas);
        }
    }

    /// Returns the addresses that are not cached yet, module by module. Which module contained one is determined
    /// again when the recording ends, so a module that is seen late costs a look-up and no wrong name.
    fn wanted(&mut self, news: Vec<New>) -> Vec<(Module, Vec<u64>)> {
        let mut wanted: FxHashMap<Module, Vec<u64>> = FxHashMap::default();
        for new in news {
            let modules = self.processes.entry(new.process).or_default();
            modules.extend(new.modules);
            let map = ModuleMap::of(modules);
            for key in &new.addresses {
                let Some(module) = map.at(key).map(|at| &modules[at]) else { continue };
                // A return address points behind the call: one less is within it.
                let svma = key.avma.wrapping_sub(module.bias).wrapping_sub(u64::from(!key.exact));
                let module = Module { path: module.path.clone(), build_id: module.build_id.clone() };
                let next = self.numbers.len() as u32;
                let number = *self.numbers.entry(module.clone()).or_insert(next);
                if self.known.insert((number, svma)) {
                    wanted.entry(module).or_default().push(svma);
                }
            }
        }
        wanted.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, start_avma: u64, generation: u64) -> MappedModule {
        MappedModule {
            path: path.into(),
            build_id: Vec::new(),
            start_avma,
            end_avma: start_avma + 0x100,
            bias: start_avma,
            generation,
        }
    }

    fn key(avma: u64, generation: u64) -> SymbolKey {
        SymbolKey { avma, exact: false, generation, location: 0 }
    }

    #[test]
    fn each_address_is_resolved_once_in_the_module_of_its_generation() {
        let (_sender, news) = channel();
        let mut worker = Worker::of(news);
        let new = |process, modules: &[MappedModule], addresses: &[SymbolKey]| New {
            process,
            modules: modules.to_vec(),
            addresses: addresses.to_vec(),
        };
        let mut wanted = |news| {
            let mut wanted = worker.wanted(news);
            wanted.sort_by(|a, b| a.0.path.cmp(&b.0.path));
            wanted.into_iter().map(|(module, svmas)| (module.path, svmas)).collect::<Vec<_>>()
        };
        let first = [
            new(0, &[module("/a", 0x1000, 0)], &[key(0x1010, 0), key(0x1020, 0), key(0x5000, 0)]),
            new(1, &[module("/a", 0x3000, 0)], &[key(0x3010, 0), key(0x3030, 0)]),
        ];
        assert_eq!(wanted(Vec::from(first)), [("/a".to_owned(), vec![0xf, 0x1f, 0x2f])]);
        // Another library where the first one was.
        let later = new(0, &[module("/b", 0x1000, 1)], &[key(0x1010, 1), key(0x1020, 0)]);
        assert_eq!(wanted(vec![later]), [("/b".to_owned(), vec![0xf])]);
    }

    #[test]
    fn the_thread_resolves_addresses_and_ends_with_the_recording() {
        let (answered, answers) = channel();
        let look_ahead: ResolveAhead = Box::new(move |module: &Module, svmas: &[u64]| {
            let _ = answered.send((module.path.clone(), svmas.to_vec()));
        });
        let ahead = Ahead::start(look_ahead).unwrap();
        let new = New { process: 0, modules: vec![module("/a", 0x1000, 0)], addresses: vec![key(0x1010, 0)] };
        ahead.new.as_ref().unwrap().send(new).unwrap();
        assert_eq!(answers.recv().unwrap(), ("/a".to_owned(), vec![0xf]));
        drop(ahead);
        assert!(answers.recv().is_err(), "the thread has let go of what it was given");
    }

    #[test]
    fn who_waits_has_all_that_was_begun() {
        let (answered, answers) = channel();
        let (begun, has_begun) = channel();
        let look_ahead: ResolveAhead = Box::new(move |_: &Module, svmas: &[u64]| {
            let _ = begun.send(());
            std::thread::sleep(Duration::from_millis(50));
            let _ = answered.send(svmas.to_vec());
        });
        let ahead = Ahead::start_with(look_ahead, Duration::ZERO, || {}).unwrap();
        let new = New { process: 0, modules: vec![module("/a", 0x1000, 0)], addresses: vec![key(0x1010, 0)] };
        ahead.new.as_ref().unwrap().send(new).unwrap();
        has_begun.recv().unwrap();
        ahead.end_and_wait();
        assert_eq!(answers.try_recv(), Ok(vec![0xf]));
    }
}
