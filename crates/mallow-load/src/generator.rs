//! The threads that ask.
//!
//! A generator's threads live from its start to its end. Each has a runtime of its own on which its share of the
//! connections lives; no connection ever moves to another thread, so that nothing is stolen and nothing is locked on
//! the way of a request. Between two runs they wait with their connections open.

use crate::engine::plan::Plan;
use crate::engine::setup::Setup;
use crate::engine::stats::Stats;
use crate::engine::worker_thread::{self, Command};
use crate::negotiation::negotiate;
use crate::{Amount, Load, LoadError, Metrics, Protocol};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use tokio::sync::mpsc::UnboundedSender;

/// A load generator with its threads and connections.
#[derive(Debug)]
pub struct Generator {
    connections: u32,
    protocol: Protocol,
    rate: Option<f64>,
    /// The end of the list when targets are asked for once.
    requests_max: Option<u64>,
    threads: Vec<WorkerThread>,
    stopped: Arc<AtomicBool>,
}

/// A thread, as the one that started it sees it.
#[derive(Debug)]
struct WorkerThread {
    commands: UnboundedSender<Command>,
    handle: Option<JoinHandle<()>>,
}

impl Generator {
    /// Looks at a load before there is a server.
    ///
    /// # Errors
    /// When it makes no sense (no target, no connection, a path or a host that cannot be sent), or a file of certificates cannot be used.
    pub fn check(load: &Load) -> Result<(), LoadError> {
        Setup::of(load, load.protocol.unwrap_or(Protocol::Http1), 1).map(drop)
    }

    /// Starts the threads. Nothing is asked yet; but where TLS is spoken a handshake tells that it is, and which protocol the
    /// server chooses.
    ///
    /// # Errors
    /// Those of [`Generator::check`], no TLS with the server, or a thread that the system refuses.
    pub fn start(load: Load) -> Result<Generator, LoadError> {
        Generator::check(&load)?;
        let protocol = negotiate(&load.endpoint, load.protocol, load.timeout)?;
        let processors = thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let count = load.threads.unwrap_or(processors).clamp(1, load.connections);
        let setup = Arc::new(Setup::of(&load, protocol, count)?);
        let requests_max = setup.prepared.requests_max();
        let mut threads = Vec::new();
        for index in 0..count {
            threads.push(WorkerThread::start(index, Arc::clone(&setup))?);
        }
        Ok(Generator {
            connections: load.connections,
            protocol,
            rate: load.rate,
            requests_max,
            threads,
            stopped: Arc::default(),
        })
    }

    /// Sends load and waits until every request is over. `connections`, when given, stands for the load's own number
    /// in this run.
    ///
    /// A run of [`Amount::Requests`] sends exactly so many. One of [`Amount::Duration`] begins none after its end and
    /// waits for those that are under way. Connections stay open afterwards, if they are kept at all.
    pub fn run(&mut self, amount: Amount, connections: Option<u32>) -> Metrics {
        let connections = connections.unwrap_or(self.connections).max(1);
        let plan =
            Arc::new(Plan::new(amount, self.rate, connections, self.requests_max).stopped_by(&self.stopped));
        let (results, tallies) = mpsc::channel();
        for thread in &self.threads {
            // A thread that is gone does not answer, and is missing from the sum below.
            let _ = thread.commands.send(Command::Run(Arc::clone(&plan), results.clone()));
        }
        drop(results);
        Stats::metrics(&tallies.into_iter().collect::<Vec<Stats>>())
    }

    /// How requests travel.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What another thread sets to true to end the run under way before its time, and every later one: no request begins
    /// any more; those under way are waited for a second longer, and then given up and not counted.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// Closes every connection, and waits until that is done. The next run opens new ones.
    pub fn close(&mut self) {
        let (done, all) = mpsc::channel::<()>();
        for thread in &self.threads {
            let _ = thread.commands.send(Command::Close(done.clone()));
        }
        drop(done);
        // Ends when the last thread has let go of its end.
        let _ = all.into_iter().count();
    }
}

impl WorkerThread {
    fn start(index: u32, setup: Arc<Setup>) -> Result<WorkerThread, LoadError> {
        let runtime = worker_thread::runtime()
            .map_err(|cause| LoadError::System { what: "wait for its connections", cause })?;
        let (commands, received) = tokio::sync::mpsc::unbounded_channel();
        let handle = thread::Builder::new()
            .name(format!("load-{index}"))
            .spawn(move || worker_thread::serve(&runtime, index, setup, received))
            .map_err(|cause| LoadError::System { what: "start a thread", cause })?;
        Ok(WorkerThread { commands, handle: Some(handle) })
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            // Without a sender the thread's list of commands ends, and with it the thread.
            thread.commands = tokio::sync::mpsc::unbounded_channel().0;
        }
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}
