//! The results of a leak test under load: as text, Markdown, JUnit, a chart, and while it runs.

pub mod advice;
pub mod drawing;
pub mod finding;
pub mod junit;
pub mod live;
mod markdown;
pub mod metrics;
pub mod sentence;
pub mod text;
pub mod warp;
