//! A stream that can acknowledge what it has read at once.
//!
//! Half of the common servers send an answer in two pieces and leave Nagle's algorithm on: the second piece waits until the first one is
//! acknowledged, and the kernel delays that by 40 ms, hoping to send it along with a request. Nothing is sent while an
//! answer is incomplete, so it hopes in vain; then the acknowledgement is asked for. A whole answer in one piece costs nothing more.
//! Where nobody knows when an answer is complete, in a handshake and where many share a connection, what was read is acknowledged whenever
//! there is nothing more to read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What the stream, which hyper owns, and its user say to each other.
#[derive(Debug, Default)]
pub(crate) struct Debt {
    /// Something was read and perhaps not acknowledged.
    owed: AtomicBool,
    /// It is to be acknowledged when somebody wants to read on.
    due: AtomicBool,
    /// Whoever uses the stream says when that is; until then it is whenever nothing more has arrived.
    is_managed: AtomicBool,
}

impl Debt {
    /// From now on nothing is acknowledged early but what [`Debt::call_in`] says.
    pub(super) fn manage(&self) {
        self.is_managed.store(true, Ordering::Relaxed);
    }

    /// Returns whether something was read that has to be acknowledged now that there is nothing more to read.
    fn is_overdue(&self) -> bool {
        !self.is_managed.load(Ordering::Relaxed) && self.owed.swap(false, Ordering::Relaxed)
    }

    /// What was read until now needs no hurry: a request is about to be sent, and takes the acknowledgement along.
    pub(super) fn forgive(&self) {
        self.owed.store(false, Ordering::Relaxed);
    }

    /// Has what was read acknowledged at the next attempt to read; false when nothing was.
    pub(super) fn call_in(&self) -> bool {
        let is_owed = self.owed.swap(false, Ordering::Relaxed);
        self.due.store(is_owed, Ordering::Relaxed);
        is_owed
    }
}

#[derive(Debug)]
pub(super) struct Prompt {
    stream: TcpStream,
    debt: Arc<Debt>,
}

impl Prompt {
    pub(super) fn new(stream: TcpStream) -> (Prompt, Arc<Debt>) {
        let debt = Arc::new(Debt::default());
        (Prompt { stream, debt: Arc::clone(&debt) }, debt)
    }

    fn acknowledge(&self) {
        // Where it is refused, the answer comes later.
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.stream, true);
    }
}

impl AsyncRead for Prompt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.debt.due.swap(false, Ordering::Relaxed) {
            self.acknowledge();
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.debt.owed.store(true, Ordering::Relaxed);
        } else if read.is_pending() && self.debt.is_overdue() {
            self.acknowledge();
        }
        read
    }
}

impl AsyncWrite for Prompt {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
