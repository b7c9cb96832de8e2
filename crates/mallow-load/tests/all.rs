//! The tests of this crate in one program: it is linked once, and its tests share the cores.

mod flow;
mod generator;
mod http2;
mod server;
mod tls;
