//! Flame graphs: stacks with weights as a self-contained SVG file.
//!
//! A flame graph is readable without its script, in any viewer: each box has its name and its metrics in it, and shows more in a
//! tooltip. In a browser its own script zooms, searches and inverts it, by mouse or by keys, at any width, in light and dark
//! mode. All of it is written here and is under mallow's licence.
//!
//! This crate knows functions, places and weights, and must never know which metric a weight is, or where stacks come from. It does
//! no I/O.
//!
//! In reading order: the widest of the boxes that [`Flames`] merged are kept (`kept.rs`), drawn (`picture.rs`) with their text
//! (`written.rs`) and colours (`colours.rs`), and passed to the script (`data.rs`, `flame.js`).

mod colours;
mod data;
mod kept;
mod picture;
mod written;

use kept::KeptBoxes;
use mallow_stacks::{Flames, Unit};

/// How a flame graph looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameGraph {
    /// Its first line.
    pub title: String,
    /// Its second line.
    pub subtitle: String,
    /// What weights count in.
    pub unit: Unit,
    /// What is counted, such as `allocations`; empty where the unit says it.
    pub counted: String,
    /// Whether the outermost calls stand at the top instead of at the bottom.
    pub icicle: bool,
    /// Whether two profiles are compared: then colours say what became more and what less.
    pub is_compared: bool,
}

/// There is nothing to draw: no stack weighs anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingToDraw;

impl std::fmt::Display for NothingToDraw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is nothing to draw")
    }
}

impl std::error::Error for NothingToDraw {}

impl FlameGraph {
    /// The picture as an SVG document.
    ///
    /// # Errors
    /// No stack weighs anything.
    pub fn draw(&self, flames: &Flames) -> Result<String, NothingToDraw> {
        let kept = KeptBoxes::of(flames);
        if kept.whole().width == 0 {
            return Err(NothingToDraw);
        }
        Ok(picture::svg(self, flames, &kept))
    }
}

#[cfg(test)]
mod tests;
