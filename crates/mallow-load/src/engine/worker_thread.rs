//! One thread of a generator: its runtime, its workers, and the commands that it executes.

use super::http2::{Channel, STREAMS_MAX};
use super::plan::Plan;
use super::setup::Setup;
use super::stats::Stats;
use super::worker::{Run, Wire, Worker};
use crate::Protocol;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinSet, LocalSet};

/// The interval at which it is checked whether a run was stopped.
const STOPPED_LOOK: Duration = Duration::from_millis(50);
/// How long requests in flight may then still take.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

/// A command to a thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Take part in a run, and send the counts.
    Run(Arc<Plan>, Sender<Stats>),
    /// Close every connection; the sender is dropped when that is done.
    Close(Sender<()>),
}

/// Returns a runtime that never leaves its thread.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

/// Executes commands until all senders are dropped.
pub(crate) fn serve(
    runtime: &Runtime,
    index: u32,
    setup: Arc<Setup>,
    mut commands: UnboundedReceiver<Command>,
) {
    let mut worker_set = WorkerSet { index, setup, workers: Vec::new(), channels: Vec::new() };
    LocalSet::new().block_on(runtime, async {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Run(plan, results) => {
                    let _ = results.send(worker_set.run(plan).await);
                }
                Command::Close(done) => {
                    worker_set.close().await;
                    drop(done);
                }
            }
        }
        worker_set.close().await;
    });
}

/// The workers of a thread.
struct WorkerSet {
    index: u32,
    setup: Arc<Setup>,
    workers: Vec<Worker>,
    /// Shared connections (HTTP/2).
    channels: Vec<Rc<Channel>>,
}

impl WorkerSet {
    async fn run(&mut self, plan: Arc<Plan>) -> Stats {
        let (cpu, wall) = (thread_cpu(), Instant::now());
        self.add_workers(plan.workers);
        let stats = RefCell::new(Stats::new(self.setup.is_scheduled));
        let run = Rc::new(Run { setup: Arc::clone(&self.setup), plan, stats });
        // Lets the runtime notice connections that the server has closed since the last run.
        tokio::task::yield_now().await;
        let mut tasks = JoinSet::new();
        for worker in self.workers.drain(..) {
            let _ = tasks.spawn_local(worker.work(Rc::clone(&run)));
        }
        self.workers = joined(tasks, &run.plan).await;
        let mut stats = run.stats.replace(Stats::new(false));
        stats.cpu = thread_cpu().saturating_sub(cpu);
        stats.wall = wall.elapsed();
        stats
    }

    /// Changes the number of workers to this thread's share of `workers`.
    fn add_workers(&mut self, workers: u32) {
        let share = (self.index..workers).step_by(self.setup.threads as usize).count();
        self.workers.truncate(share);
        while self.workers.len() < share {
            let place = self.workers.len();
            let wire = self.wire(place);
            let index = self.index + place as u32 * self.setup.threads;
            self.workers.push(Worker::new(index, wire, &self.setup));
        }
    }

    fn wire(&mut self, place: usize) -> Wire {
        if self.setup.protocol == Protocol::Http1 {
            return Wire::Http1(None);
        }
        // Without keep-alive, each request has a connection of its own.
        let channel = if self.setup.keep_alive { place / STREAMS_MAX } else { place };
        while self.channels.len() <= channel {
            self.channels.push(Rc::default());
        }
        Wire::Http2(Rc::clone(&self.channels[channel]))
    }

    async fn close(&mut self) {
        for worker in &mut self.workers {
            worker.close().await;
        }
        for channel in &self.channels {
            channel.close().await;
        }
    }
}

/// Returns the workers when they are done, in their order. In a run that was stopped, those that still wait for a
/// response after a while are dropped: a server may take arbitrarily long, and the caller does not want to wait.
async fn joined(mut tasks: JoinSet<Worker>, plan: &Plan) -> Vec<Worker> {
    let mut workers = Vec::with_capacity(tasks.len());
    let mut is_given_up = false;
    let mut patience = pin!(async {
        while !plan.is_stopped() {
            tokio::time::sleep(STOPPED_LOOK).await;
        }
        tokio::time::sleep(STOPPED_PATIENCE).await;
    });
    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                Some(Ok(worker)) => workers.push(worker),
                Some(Err(_)) => {}
                None => break,
            },
            () = &mut patience, if !is_given_up => {
                is_given_up = true;
                tasks.abort_all();
            }
        }
    }
    workers.sort_unstable_by_key(Worker::index);
    workers
}

/// Returns the CPU time that this thread has used.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
