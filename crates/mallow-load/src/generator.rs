//! The threads that ask.

use crate::{Amount, Figures, Load, LoadError};

/// A load generator with its threads and connections.
#[derive(Debug)]
pub struct Generator {}

impl Generator {
    /// Starts the threads; nothing is sent yet.
    ///
    /// # Errors
    /// When the system refuses threads or sockets.
    pub fn start(_load: Load) -> Result<Generator, LoadError> {
        Ok(Generator {})
    }

    /// Sends load and waits until every request is over. `connections`, when given, stands for the load's own number
    /// in this run.
    pub fn run(&mut self, _amount: Amount, _connections: Option<u32>) -> Figures {
        Figures::default()
    }

    /// Closes every connection, and waits until that is done.
    pub fn close(&mut self) {}
}
