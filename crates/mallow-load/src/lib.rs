//! Load generator for HTTP servers: which requests ([`Target`]), at which rate and over which connections ([`Load`]), and the
//! results ([`Metrics`]).
//!
//! A [`Generator`] keeps its threads and connections between runs, so that a run can be counted exactly, drained, and
//! its connections closed before the server is observed. Its memory does not grow with the requests.
//!
//! It contacts loopback addresses only, unless it is told otherwise.

mod address;
mod base64;
mod endpoint;
mod engine;
mod error;
pub mod external;
mod flow;
mod generator;
mod lines;
mod load;
mod metrics;
mod negotiation;
mod probe;
mod request_files;
mod tls;

pub use address::{Url, parse_url};
pub use endpoint::Endpoint;
pub use error::LoadError;
pub use flow::{Flow, parse_flow, read_flow};
pub use generator::Generator;
pub use load::{Amount, Load, Order, Protocol, Target};
pub use metrics::{Latency, Metrics};
pub use probe::{check_endpoint, status_of};
pub use request_files::{UrlFile, parse_access_log, parse_urls, read_access_log, read_urls};
pub use tls::{Tls, Trust};
