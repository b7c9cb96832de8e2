//! A stream that can acknowledge at once what it has read.
//!
//! Half of the common servers send a response in two pieces and leave Nagle's algorithm on. Then the second piece
//! waits until the first one is acknowledged, and the kernel delays the acknowledgement by 40 ms, to combine it with
//! a request. But no request is sent while a response is incomplete, so the delay is useless; in that case this
//! stream forces the acknowledgement. A whole response in one piece costs nothing more. If it is not known when a
//! response is complete, as in a handshake and when many requests share a connection, what was read is acknowledged
//! whenever there is nothing more to read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// State that is shared by the stream, which hyper owns, and its user.
#[derive(Debug, Default)]
pub(crate) struct AckState {
    /// Something was read and may not be acknowledged yet.
    unacknowledged: AtomicBool,
    /// It shall be acknowledged at the next read.
    due: AtomicBool,
    /// The user of the stream decides when that is. If not set, it is whenever nothing more has arrived.
    is_managed: AtomicBool,
}

impl AckState {
    /// From now on, only [`AckState::request_ack`] causes early acknowledgements.
    pub(super) fn manage(&self) {
        self.is_managed.store(true, Ordering::Relaxed);
    }

    /// Returns whether something that was read has to be acknowledged, now that there is nothing more to read.
    fn must_acknowledge(&self) -> bool {
        !self.is_managed.load(Ordering::Relaxed) && self.unacknowledged.swap(false, Ordering::Relaxed)
    }

    /// Cancels the acknowledgement of what was read: a request is about to be sent and will carry it.
    pub(super) fn cancel(&self) {
        self.unacknowledged.store(false, Ordering::Relaxed);
    }

    /// Requests an acknowledgement at the next read; returns false if nothing is unacknowledged.
    pub(super) fn request_ack(&self) -> bool {
        let is_unacknowledged = self.unacknowledged.swap(false, Ordering::Relaxed);
        self.due.store(is_unacknowledged, Ordering::Relaxed);
        is_unacknowledged
    }
}

#[derive(Debug)]
pub(super) struct Prompt {
    stream: TcpStream,
    ack_state: Arc<AckState>,
}

impl Prompt {
    pub(super) fn new(stream: TcpStream) -> (Prompt, Arc<AckState>) {
        let ack_state = Arc::new(AckState::default());
        (Prompt { stream, ack_state: Arc::clone(&ack_state) }, ack_state)
    }

    fn acknowledge(&self) {
        // If the kernel refuses, the response is delayed.
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.stream, true);
    }
}

impl AsyncRead for Prompt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ack_state.due.swap(false, Ordering::Relaxed) {
            self.acknowledge();
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.ack_state.unacknowledged.store(true, Ordering::Relaxed);
        } else if read.is_pending() && self.ack_state.must_acknowledge() {
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
