//! What a leak test under load came to: as text, Markdown, JUnit, a drawing, and while it runs.

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
