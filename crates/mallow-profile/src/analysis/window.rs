//! What each site did in a window, and what it held at the window's end.

use super::Window;
use super::block::{Block, Death, entry};
use crate::StackId;
use mallow_base::add_fields;

/// Metrics of a site in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowMetrics {
    /// Allocations in the window.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks freed in the window, whenever they were allocated.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Blocks that were live at the window's end, whenever they were allocated.
    pub live_blocks: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Blocks that were allocated in the window and live at its end.
    pub kept_blocks: u64,
    /// Their bytes.
    pub kept_bytes: u64,
}

/// A site in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSite {
    /// The stack; none when none was taken.
    pub stack: Option<StackId>,
    /// Its metrics.
    pub metrics: WindowMetrics,
}

impl WindowMetrics {
    /// Adds another site's metrics.
    pub fn add(&mut self, other: &WindowMetrics) {
        add_fields!(
            self, other; allocations, bytes, frees, freed_bytes, live_blocks, live_bytes, kept_blocks,
            kept_bytes
        );
    }
}

/// The metrics by site, while events pass.
#[derive(Debug, Default)]
pub(super) struct WindowAggregator {
    window: Window,
    sites: Vec<WindowMetrics>,
}

impl WindowAggregator {
    pub(super) fn new(window: Window) -> WindowAggregator {
        WindowAggregator { window, ..WindowAggregator::default() }
    }

    #[inline]
    pub(super) fn born(&mut self, block: &Block) {
        if block.born_us >= self.window.to_us {
            return;
        }
        let inside = self.window.contains(block.born_us);
        let site = entry(&mut self.sites, block.site());
        site.live_blocks += 1;
        site.live_bytes = site.live_bytes.wrapping_add(block.size);
        if inside {
            site.allocations += 1;
            site.bytes = site.bytes.wrapping_add(block.size);
            site.kept_blocks += 1;
            site.kept_bytes = site.kept_bytes.wrapping_add(block.size);
        }
    }

    #[inline]
    pub(super) fn died(&mut self, block: &Block, death: &Death) {
        // Events from the window's end on do not change what was live then.
        if death.time_us >= self.window.to_us || block.born_us >= self.window.to_us {
            return;
        }
        let born_inside = self.window.contains(block.born_us);
        let died_inside = self.window.contains(death.time_us);
        let site = entry(&mut self.sites, block.site());
        site.live_blocks -= 1;
        site.live_bytes = site.live_bytes.wrapping_sub(block.size);
        if died_inside {
            site.frees += 1;
            site.freed_bytes = site.freed_bytes.wrapping_add(block.size);
        }
        if born_inside {
            site.kept_blocks -= 1;
            site.kept_bytes = site.kept_bytes.wrapping_sub(block.size);
        }
    }

    /// The sites that have any metric.
    pub(super) fn finish(self, stack_of: impl Fn(usize) -> Option<StackId>) -> Vec<WindowSite> {
        let all = self.sites.into_iter().enumerate();
        all.filter(|(_, metrics)| *metrics != WindowMetrics::default())
            .map(|(site, metrics)| WindowSite { stack: stack_of(site), metrics })
            .collect()
    }
}
