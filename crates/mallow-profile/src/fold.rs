//! (under construction)
/// Index of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId(pub u32);
/// Index of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadIndex(pub u32);
/// The fold.
#[derive(Debug)]
pub struct Fold;
/// Its result.
#[derive(Debug)]
pub struct Folded;
/// One site of it.
#[derive(Debug)]
pub struct FoldedSite;
