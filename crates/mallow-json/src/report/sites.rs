//! The sites of a report, each with its frames or, in a compact document, with their numbers in a table.
//!
//! Sites are written as they are walked, because stacks share most of their frames and would not fit into memory apart.

use super::{Metrics, MetricsJson};
use crate::frame_table::FrameTable;
use crate::parts::FrameJson;
use mallow_profile::SiteTotals;
use mallow_view::{SiteRow, Sites};
use serde::{Serialize, Serializer};
use std::rc::Rc;

/// The sites that are shown.
pub struct SitesJson<'a> {
    of: Metrics<'a>,
    sites: Sites<'a>,
    /// In a compact document.
    table: Option<Rc<FrameTable<'a>>>,
}

/// The table of a compact document.
pub(super) struct FramesJson<'a>(Rc<FrameTable<'a>>);

impl Serialize for FramesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What a limit left out.
#[derive(Serialize)]
pub(super) struct RestOfSitesJson {
    sites: usize,
    #[serde(rename = "figures")]
    metrics: MetricsJson,
}

/// A site with its frames.
#[derive(Serialize)]
struct SiteJson<'s, 'a> {
    #[serde(flatten)]
    metrics: MetricsJson,
    #[serde(serialize_with = "frames")]
    frames: (&'s Sites<'a>, &'s SiteRow),
}

/// A site with the numbers of its frames.
#[derive(Serialize)]
struct CompactSiteJson<'s, 'a> {
    #[serde(flatten)]
    metrics: MetricsJson,
    #[serde(serialize_with = "stack")]
    stack: (&'s FrameTable<'a>, &'s SiteRow),
}

impl<'a> SitesJson<'a> {
    /// As many of the sorted sites as the limit allows, and the rest in one.
    pub(super) fn of(
        of: Metrics<'a>,
        mut sites: Sites<'a>,
        limit: usize,
        compact: bool,
    ) -> (Self, Option<RestOfSitesJson>) {
        let rest = sites.rows.get(limit..).filter(|rest| !rest.is_empty()).map(|rest| {
            let mut totals = SiteTotals::default();
            rest.iter().for_each(|row| totals.add(&row.totals));
            RestOfSitesJson { sites: rest.len(), metrics: of.metrics(&totals) }
        });
        sites.rows.truncate(limit);
        let stacks = sites.rows.iter().map(|row| row.stack);
        let table = compact.then(|| Rc::new(FrameTable::of(&of.profile.stacks, stacks)));
        (Self { of, sites, table }, rest)
    }

    /// The table, if there is one.
    pub(super) fn table(&self) -> Option<FramesJson<'a>> {
        self.table.clone().map(FramesJson)
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Self {
        let rows = std::mem::take(&mut self.sites.rows);
        let mut sites = self.sites.clone();
        sites.rows = rows;
        Self { sites, of: self.of, table: self.table.clone() }
    }

    /// How many frames stand in the stacks; none in a compact document.
    pub(super) fn frames_written(&self) -> u64 {
        if self.table.is_some() {
            return 0;
        }
        let stacks = &self.of.profile.stacks;
        let mut depths: Vec<u64> = Vec::with_capacity(stacks.nodes.len());
        for node in &stacks.nodes {
            let callers = node.parent.map_or(0, |parent| depths[parent.0 as usize]);
            depths.push(callers + stacks.locations[node.location.0 as usize].frames.len() as u64);
        }
        let of_row = |row: &SiteRow| row.stack.map_or(0, |stack| depths[stack.0 as usize]);
        self.sites.rows.iter().map(of_row).sum()
    }

    /// The sites, each as it stands in the document.
    pub fn each(&self) -> impl Iterator<Item = impl Serialize> {
        self.sites.rows.iter().map(|row| EitherSite { of: self, row })
    }
}

impl Serialize for SitesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.each())
    }
}

/// A site of either kind of document.
struct EitherSite<'s, 'a> {
    of: &'s SitesJson<'a>,
    row: &'s SiteRow,
}

impl Serialize for EitherSite<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { of: SitesJson { of, sites, table }, row } = self;
        let metrics = of.metrics(&row.totals);
        match table {
            Some(table) => CompactSiteJson { metrics, stack: (table, row) }.serialize(serializer),
            None => SiteJson { metrics, frames: (sites, row) }.serialize(serializer),
        }
    }
}

fn frames<S: Serializer>((sites, row): &(&Sites<'_>, &SiteRow), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sites.frames(row).map(FrameJson::from))
}

fn stack<S: Serializer>(
    (table, row): &(&FrameTable<'_>, &SiteRow),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(table.stack(row.stack).skip(row.folded))
}
