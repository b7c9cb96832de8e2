//! The result of reading a log of garbage collections, as text and as a chart.

mod drawing;
mod text;

pub use drawing::svg;
pub use text::text;
