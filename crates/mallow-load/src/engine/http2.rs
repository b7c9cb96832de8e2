//! A connection that carries many requests at once.
//!
//! The workers of a thread share connections, up to [`STREAMS_MAX`] workers for each: servers commonly allow 100 to
//! 250 concurrent requests on a connection (RFC 9113 recommends at least 100). If one allows fewer, hyper waits.

use super::cause::Cause;
use super::connector::Connector;
use super::http1::{Answer, Broken, GOODBYE_MAX, take_in};
use super::prepared::Body;
use crate::flow::ResponseParts;
use hyper::Request;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use std::future::Future;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, spawn_local};

/// The maximum number of workers on one connection.
pub(crate) const STREAMS_MAX: usize = 100;

/// A slot for a connection. At most one is open; a new one replaces one that is closed.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    sender: Option<SendRequest<Body>>,
    task: Option<JoinHandle<()>>,
    /// Counts connections, so that of many workers that see one fail only the first replaces it.
    generation: u64,
}

/// A worker's handle for sending.
#[derive(Debug)]
pub(crate) struct Sender {
    sender: SendRequest<Body>,
    generation: u64,
    /// Whether the connection was opened for this request.
    pub(crate) is_fresh: bool,
}

impl Channel {
    /// Returns the open connection, or a new one. `broken` is one that failed.
    pub(crate) async fn sender(
        &self,
        connector: &Connector,
        broken: Option<&Sender>,
    ) -> Result<Sender, Cause> {
        let mut open = self.open.lock().await;
        let generation = open.generation;
        if let Some(sender) = &open.sender
            && !sender.is_closed()
            && broken.is_none_or(|broken| broken.generation != generation)
        {
            return Ok(Sender { sender: sender.clone(), generation, is_fresh: false });
        }
        open.sender = None;
        let opened = connector.open().await.map_err(|error| Cause::of_opening(&error))?;
        let (sender, connection) = Builder::new(Local)
            .handshake(TokioIo::new(opened.stream))
            .await
            .map_err(|error| Cause::of_exchange(&error))?;
        // The previous connection, if any, ends with the last request on it.
        open.task = Some(spawn_local(async {
            // Every exchange that it ends returns the error as well, and counts it.
            let _ = connection.await;
        }));
        open.sender = Some(sender.clone());
        open.generation += 1;
        Ok(Sender { sender, generation: open.generation, is_fresh: true })
    }

    /// Closes the connection and waits until it is closed.
    pub(crate) async fn close(&self) {
        let mut open = self.open.lock().await;
        open.sender = None;
        if let Some(mut task) = open.task.take()
            && tokio::time::timeout(GOODBYE_MAX, &mut task).await.is_err()
        {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Sender {
    /// Sends a request and reads its whole response.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Body>,
        kept: Option<&mut ResponseParts>,
    ) -> Result<Answer, Broken> {
        self.sender.ready().await.map_err(|error| Broken {
            cause: Cause::of_exchange(&error),
            unsent: true,
            unanswered: true,
        })?;
        let answer = take_in(self.sender.send_request(request), kept).await;
        // If a stream ended with its connection, hyper reports only that it ended.
        answer.map_err(|broken| match broken.cause {
            Cause::BadAnswer if self.sender.is_closed() => Broken { cause: Cause::ClosedEarly, ..broken },
            _ => broken,
        })
    }
}

/// Spawns hyper's tasks on the connection's own thread.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F: Future + 'static> Executor<F> for Local {
    fn execute(&self, task: F) {
        spawn_local(async {
            task.await;
        });
    }
}
