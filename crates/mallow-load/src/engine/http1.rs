//! A connection that carries one request at a time.
//!
//! hyper splits a connection into a sender and a future that reads and writes. Here the worker that waits for the
//! response polls that future: a task of its own would cost two wake-ups for each request.

use super::cause::Cause;
use super::connector::{AnyStream, Connector, Opened};
use super::prepared::Body;
use super::prompt::AckState;
use crate::flow::ResponseParts;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A connection that has not been shut down after this time is dropped.
pub(crate) const GOODBYE_MAX: Duration = Duration::from_millis(100);

/// The parts of a response that are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
}

/// An exchange that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    pub(crate) cause: Cause,
    /// The request was not sent, so it can be retried even if it is not idempotent.
    pub(crate) unsent: bool,
    /// No byte of a response was received.
    pub(crate) unanswered: bool,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: SendRequest<Body>,
    connection: Pin<Box<Connection<TokioIo<AnyStream>, Body>>>,
    ack_state: Arc<AckState>,
    is_over: bool,
}

impl Http1 {
    pub(crate) async fn open(connector: &Connector) -> Result<Http1, Cause> {
        let Opened { stream, ack_state, .. } =
            connector.open().await.map_err(|error| Cause::of_opening(&error))?;
        ack_state.manage();
        let (sender, connection) = Builder::new()
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Cause::of_exchange(&error))?;
        Ok(Http1 { sender, connection: Box::pin(connection), ack_state, is_over: false })
    }

    /// Returns whether another request can be sent: the server may have closed the connection since the last one.
    pub(crate) async fn is_open(&mut self) -> bool {
        poll_fn(|context| {
            self.drive(context);
            Poll::Ready(())
        })
        .await;
        !self.is_over && !self.sender.is_closed()
    }

    /// Sends a request and reads its whole response.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Body>,
        kept: Option<&mut ResponseParts>,
    ) -> Result<Answer, Broken> {
        let unsent = |error| Broken { cause: Cause::of_exchange(&error), unsent: true, unanswered: true };
        poll_fn(|context| match self.sender.poll_ready(context) {
            Poll::Pending => {
                self.drive(context);
                self.sender.poll_ready(context)
            }
            ready => ready,
        })
        .await
        .map_err(unsent)?;
        self.ack_state.cancel();
        let answer = self.sender.send_request(request);
        let mut answer = pin!(take_in(answer, kept));
        let (connection, ack_state, is_over) = (&mut self.connection, &self.ack_state, &mut self.is_over);
        poll_fn(|context| {
            loop {
                // Poll the connection first, which writes the request and reads the response, and then the future that waits for it.
                if !*is_over {
                    *is_over = connection.as_mut().poll(context).is_ready();
                }
                let answered = answer.as_mut().poll(context);
                if answered.is_ready() || *is_over || !ack_state.request_ack() {
                    return answered;
                }
            }
        })
        .await
    }

    /// Closes it properly; this waits a moment until TLS's close_notify is sent.
    pub(crate) async fn close(self) {
        drop(self.sender);
        if !self.is_over {
            // A peer that does not read it in time is dropped.
            let _ = tokio::time::timeout(GOODBYE_MAX, self.connection).await;
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        if !self.is_over {
            // The exchange returns the error as well, and counts it there.
            self.is_over = self.connection.as_mut().poll(context).is_ready();
        }
    }
}

/// Waits for a response, counts its body, and keeps the parts that are wanted.
pub(crate) async fn take_in(
    answer: impl Future<Output = hyper::Result<Response<Incoming>>>,
    mut kept: Option<&mut ResponseParts>,
) -> Result<Answer, Broken> {
    let answer = answer.await.map_err(|error| Broken {
        cause: Cause::of_exchange(&error),
        unsent: error.is_canceled(),
        unanswered: true,
    })?;
    let status = answer.status().as_u16();
    let (head, mut body) = answer.into_parts();
    if let Some(kept) = &mut kept {
        kept.headers = head.headers;
    }
    let mut body_bytes = 0;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| Broken {
            cause: Cause::of_exchange(&error),
            unsent: false,
            unanswered: false,
        })?;
        let Some(data) = frame.data_ref() else { continue };
        body_bytes += data.len() as u64;
        if let Some(kept) = &mut kept {
            kept.add(data);
        }
    }
    Ok(Answer { status, body_bytes })
}
