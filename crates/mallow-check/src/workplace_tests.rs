//! Working folders, made and found.
