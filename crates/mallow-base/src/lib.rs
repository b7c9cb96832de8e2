//! (filled in next commit)
