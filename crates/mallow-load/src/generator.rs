//! The generator and its threads.
//!
//! The threads live as long as the generator. Each has a runtime of its own, which owns its share of the connections.
//! No connection moves to another thread, so a request needs neither locks nor work stealing. Between two runs they
//! wait with their connections open.

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
    /// The length of the list, if targets are requested once.
    requests_max: Option<u64>,
    threads: Vec<WorkerThread>,
    stopped: Arc<AtomicBool>,
}

/// The handle of a thread.
#[derive(Debug)]
struct WorkerThread {
    commands: UnboundedSender<Command>,
    handle: Option<JoinHandle<()>>,
}

impl Generator {
    /// Checks a load before there is a server.
    ///
    /// # Errors
    /// If it is invalid (no target, no connection, a path or a host that cannot be sent), or a certificate file
    /// cannot be used.
    pub fn check(load: &Load) -> Result<(), LoadError> {
        Setup::of(load, load.protocol.unwrap_or(Protocol::Http1), 1).map(drop)
    }

    /// Starts the threads. No request is sent yet; but with TLS, a handshake checks that the server uses it, and
    /// finds out which protocol it chooses.
    ///
    /// # Errors
    /// Those of [`Generator::check`], a failed TLS handshake, or a thread that the system refuses to create.
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

    /// Sends load and waits until every request is over. `connections`, if given, replaces the load's own number in
    /// this run.
    ///
    /// A run of [`Amount::Requests`] sends exactly that number. One of [`Amount::Duration`] starts no request after
    /// its end and waits for those in flight. Connections stay open afterwards, if they are kept at all.
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

    /// Returns the protocol of the requests.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns a flag that another thread can set to end the current run early, and every later one: no request
    /// starts any more; those in flight get another second, and are then abandoned and not counted.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// Closes every connection, and waits until they are closed. The next run opens new ones.
    pub fn close(&mut self) {
        let (done, all) = mpsc::channel::<()>();
        for thread in &self.threads {
            let _ = thread.commands.send(Command::Close(done.clone()));
        }
        drop(done);
        // Ends when the last thread has dropped its sender.
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
            // Dropping the sender ends the thread's loop of commands, and with it the thread.
            thread.commands = tokio::sync::mpsc::unbounded_channel().0;
        }
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}
