//! `mallow heap` as typed.

use super::choice::one_of;
use clap::Args;
use mallow_view::heap::Order;
use std::path::PathBuf;

/// `mallow heap`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowHeap {
    /// A snapshot: Ruby's ObjectSpace.dump_all, plain or compressed (gz, zst)
    #[arg(value_name = "DUMP")]
    pub(crate) file: PathBuf,
    /// Show one object: who refers to it, why it is alive, what it retains
    #[arg(long, value_name = "ADDRESS", conflicts_with = "class")]
    pub(crate) object: Option<String>,
    /// Show the objects of a class: where they were made, who holds them
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// Order of the rows
    #[arg(long, value_name = "KEY", value_parser = one_of(&Order::ALL, Order::word, |_| ""), default_value = "retained")]
    pub(crate) sort: Order,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = mallow_text::heap::ROWS_DEFAULT)]
    pub(crate) limit: usize,
}
