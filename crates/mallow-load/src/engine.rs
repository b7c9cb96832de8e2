//! The code of a generator's threads, from the plan of a run down to the bytes of a connection.

pub(crate) mod cause;
pub(crate) mod connector;
pub(crate) mod http1;
pub(crate) mod http2;
mod jar;
pub(crate) mod plan;
pub(crate) mod prepared;
mod prompt;
pub(crate) mod sequence;
pub(crate) mod setup;
pub(crate) mod stats;
pub(crate) mod timer;
pub(crate) mod user;
pub(crate) mod worker;
pub(crate) mod worker_thread;
