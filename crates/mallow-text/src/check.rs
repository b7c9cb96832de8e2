//! The results of allocation tests: as text, Markdown, JUnit, GitHub's annotations, and as SwiftNIO's scripts print them.

pub mod annotations;
mod blame;
mod details;
pub mod junit;
mod markdown;
mod metrics;
pub mod nio;
pub(crate) mod stack;
pub mod text;
