//! What a log of garbage collections came to, as text and as a drawing.

mod drawing;
mod text;

pub use drawing::svg;
pub use text::text;
