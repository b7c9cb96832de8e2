//! Payloads come back as they went in; cut or damaged ones are errors and never panics.

use mallow_base::Language;
use mallow_profile::{
    Address, Availability, EarlyEnds, Exit, LiveSample, Module, ModuleId, Nameless, Recording, RequestTotals,
    Requested, Sample, SiteSummary, SiteTotals, StackId, Summary, ThreadSummary, TimeUnit, Totals,
};
use mallow_trace::*;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = check_file_header(&bytes);
        let _ = Recording::decode(&bytes);
        let _ = ProcessStart::decode(&bytes);
        let _ = Modules::decode(&bytes);
        let _ = Stacks::decode(&bytes);
        let _ = Threads::decode(&bytes);
        let _ = Samples::decode(&bytes);
        let _ = ProcessEnd::decode(&bytes);
        let _ = Symbols::decode(&bytes);
        let _ = Summary::decode(&bytes);
        let _ = End::decode(&bytes);
    }

    #[test]
    fn stacks_come_back(
        first in 0..1000u32,
        nodes in vec((any::<Option<prop::sample::Index>>(), any::<u64>(), any::<bool>(), 0..3u64), 0..50),
    ) {
        let nodes = nodes.into_iter().enumerate().map(|(i, (parent, avma, exact, generation))| {
            let below = first as usize + i;
            let parent = parent.filter(|_| below > 0).map(|parent| parent.index(below) as u32);
            StackNode { parent, avma, exact, generation }
        });
        let stacks = Stacks { first, nodes: nodes.collect() };
        let mut payload = Vec::new();
        stacks.encode(&mut payload);
        prop_assert_eq!(Stacks::decode(&payload), Ok(stacks));
    }

    #[test]
    fn folded_metrics_come_back(
        totals in any::<[u64; 12]>(), threads in vec(any::<(u64, u64)>(), 0..4),
        sites in vec((any::<u32>(), any::<[u64; 14]>()), 0..8),
        requests in proptest::option::of(vec((any::<u32>(), any::<[u64; 4]>()), 0..4)),
    ) {
        let summary = Summary {
            totals: totals_of(&totals), peak_us: totals[10], frees_unmatched: totals[11],
            threads: threads.iter().map(|&(allocations, bytes)| ThreadSummary { allocations, bytes }).collect(),
            sites: sites.iter().map(|(stack, metrics)| site_of(*stack, metrics)).collect(),
            requests: requests.map(|list| list.iter().map(|(stack, n)| (StackId(*stack), requests_of(n))).collect()),
        };
        let mut payload = Vec::new();
        summary.encode(&mut payload);
        prop_assert_eq!(Summary::decode(&payload), Ok(summary));
    }

    #[test]
    fn samples_come_back(samples in vec(any::<(u64, u64)>(), 0..20)) {
        let samples = samples.into_iter().map(|(time_us, rss_bytes)| Sample { time_us, rss_bytes }).collect();
        let samples = Samples { samples };
        let mut payload = Vec::new();
        samples.encode(&mut payload);
        prop_assert_eq!(Samples::decode(&payload), Ok(samples));
    }
}

fn totals_of(n: &[u64; 12]) -> Totals {
    Totals {
        allocations: n[0],
        bytes: n[1],
        frees: n[2],
        reallocations: n[3],
        temporary: n[4],
        failed: n[5],
        peak_bytes: n[6],
        peak_blocks: n[7],
        leaked_bytes: n[8],
        leaked_blocks: n[9],
    }
}

fn requests_of(n: &[u64; 4]) -> RequestTotals {
    RequestTotals {
        zeroed: Requested { allocations: n[0], bytes: n[1] },
        aligned: Requested { allocations: n[2], bytes: n[3] },
    }
}

fn site_of(stack: u32, n: &[u64; 14]) -> SiteSummary {
    SiteSummary {
        stack: StackId(stack),
        totals: SiteTotals {
            allocations: n[0],
            bytes: n[1],
            reallocations: n[2],
            temporary: n[3],
            failed: n[4],
            peak_bytes: n[5],
            peak_blocks: n[6],
            leaked_bytes: n[7],
            leaked_blocks: n[8],
            live_bytes_max: n[9],
            lifetime_us_sum: n[10],
            first_us: n[11],
            last_us: n[12],
            live_blocks_at_max: n[13],
            ..SiteTotals::default()
        },
    }
}

#[test]
fn metrics_without_the_blocks_at_a_sites_maximum_are_read() {
    let site = site_of(3, &[1; 14]);
    let summary = Summary { sites: vec![site], ..Summary::default() };
    let mut payload = Vec::new();
    summary.encode(&mut payload);
    payload.pop();
    let totals = SiteTotals { live_blocks_at_max: 0, ..site.totals };
    let first = SiteSummary { totals, ..site };
    assert_eq!(Summary::decode(&payload), Ok(Summary { sites: vec![first], ..summary }));
}

#[test]
fn every_known_metric_has_its_bit_and_every_unit_its_number() {
    let bytes_of = |known, time_unit| {
        let mut payload = Vec::new();
        Origin { format: String::new(), known, time_unit }.encode(&mut payload);
        payload
    };
    assert_eq!(bytes_of(Availability::NOTHING, TimeUnit::Microseconds), [0, 0, 0]);
    assert_eq!(bytes_of(Availability::ALL, TimeUnit::Bytes), [0, 0xff, 0x1f, 2]);
    for bit in 0..12 {
        let payload = if bit < 7 { vec![0, 1 << bit, 1] } else { vec![0, 0x80, 1 << (bit - 7), 1] };
        let origin = Origin::decode(&payload).unwrap();
        assert_eq!(origin.time_unit, TimeUnit::Instructions);
        assert_eq!(bytes_of(origin.known, origin.time_unit), payload);
    }
    assert_eq!(Origin::decode(&[0, 0, 77]).unwrap().time_unit, TimeUnit::Microseconds);
}

/// Encodes, decodes, and checks that each shorter payload is refused rather than misread.
macro_rules! assert_round_trip {
    ($type:ty, $value:expr) => {{
        let value: $type = $value;
        let mut payload = Vec::new();
        value.encode(&mut payload);
        assert_eq!(<$type>::decode(&payload), Ok(value));
        for end in 0..payload.len() {
            assert!(<$type>::decode(&payload[..end]).is_err(), "cut to {end} bytes");
        }
    }};
}

#[test]
fn the_recordings_chunks_come_back() {
    let text = |text: &str| String::from(text);
    assert_round_trip!(
        Recording,
        Recording {
            command: vec![text("ls"), text("-l ä")],
            started_unix_us: 1_700_000_000_000_000,
            counting_version: 1,
            recorder_version: text("0.1.0"),
            environment: vec![(text("kernel"), text("6.1"))],
            ..Recording::default()
        }
    );
    assert_round_trip!(End, End { duration_us: 1 << 40 });
    assert_round_trip!(
        Origin,
        Origin {
            format: text("massif"),
            known: Availability { peak: true, ..Availability::NOTHING },
            time_unit: TimeUnit::Instructions
        }
    );
    let nameless = Nameless { module: text("/lib/a.so"), reason: text("ended") };
    assert_round_trip!(Unnamed, Unnamed { modules: vec![nameless, Nameless::default()] });
    let ends = EarlyEnds { module: text("/lib/a.so"), allocations: 1 << 40, or_more: true };
    assert_round_trip!(TruncatedStacks, TruncatedStacks { early_ends: vec![ends, EarlyEnds::default()] });
    assert_round_trip!(Unseen, Unseen { sentences: vec![text("process 7: 3 events"), text("")] });
    let sample = LiveSample { time_us: 7, live_bytes: 1 << 20, overhead_bytes: 300, stack_bytes: 0 };
    let site = |stack, bytes| SiteAccess { stack, read_bytes: 1 << 50, written_bytes: 3, bytes };
    let bytes = mallow_profile::ByteAccesses::of_runs([(8, 2), (1, 0), (4, 65_535)]);
    assert_round_trip!(
        Accesses,
        Accesses { sites: vec![site(StackId(9), bytes), site(mallow_profile::Aggregator::NO_STACK, None)] }
    );
    assert_round_trip!(LiveSamples, LiveSamples { samples: vec![sample, LiveSample::default()] });
}

#[test]
fn a_processs_chunks_come_back() {
    let start = ProcessStart { pid: 7, parent_pid: 1, command: "ls -l".into(), started_us: 12 };
    assert_round_trip!(ProcessStart, start);
    let main = ThreadName { index: 0, tid: 7, name: "main".into() };
    assert_round_trip!(
        Threads,
        Threads { threads: vec![main, ThreadName { index: 1, tid: 8, ..ThreadName::default() }] }
    );
    for exit in [None, Some(Exit::Status(3)), Some(Exit::Status(-1)), Some(Exit::Signal(9)), Some(Exit::Exec)]
    {
        for events_lost in [mallow_profile::EventsLost::Exactly(2), mallow_profile::EventsLost::Unknown] {
            assert_round_trip!(ProcessEnd, ProcessEnd { ended_us: 900, exit, events_lost });
        }
    }
    let module = MappedModule {
        path: "/lib/libc.so.6".into(),
        build_id: vec![1, 2, 255],
        start_avma: 0x7f00_0000_0000,
        end_avma: 0x7f00_0020_0000,
        bias: 0x7f00_0000_0000,
        generation: 2,
    };
    assert_round_trip!(Modules, Modules { modules: vec![module.clone(), module] });
}

#[test]
fn symbols_come_back_and_indices_beyond_their_tables_are_errors() {
    let frame = SymbolFrame {
        function: 0,
        file: Some(1),
        line: Some(u32::MAX),
        module: Some(2),
        inlined: true,
        ..SymbolFrame::default()
    };
    let of_script = SymbolFrame { module: None, inlined: false, language: Language::Python, ..frame };
    let symbols = Symbols {
        strings: vec!["main".into(), "a.c".into(), "/bin/a".into()],
        modules: vec![Module { path: "/bin/a".into(), build_id: vec![7] }],
        locations: vec![
            SymbolLocation {
                address: Address::InModule { module: ModuleId(0), svma: 0x1234 },
                frames: vec![frame, SymbolFrame::default()],
            },
            SymbolLocation { address: Address::Unknown, frames: vec![of_script] },
        ],
        processes: vec![SymbolProcess {
            process: 0,
            keys: vec![
                SymbolKey { avma: 0x55_1234, exact: false, generation: 3, location: 0 },
                SymbolKey { avma: 0x7000, exact: true, generation: 0, location: 1 },
            ],
        }],
    };
    let mut whole = Vec::new();
    symbols.encode(&mut whole);
    assert_eq!(Symbols::decode(&whole), Ok(symbols.clone()));
    for end in (0..whole.len()).filter(|end| *end != whole.len() - 3) {
        assert!(Symbols::decode(&whole[..end]).is_err(), "cut to {end} bytes");
    }
    let broken: [fn(&mut Symbols); 4] = [
        |symbols| symbols.processes[0].keys[1].location = 2,
        |symbols| symbols.locations[0].frames[0].function = 3,
        |symbols| symbols.locations[0].frames[0].file = Some(3),
        |symbols| symbols.locations[0].address = Address::InModule { module: ModuleId(1), svma: 0 },
    ];
    for (i, break_it) in broken.iter().enumerate() {
        let (mut symbols, mut payload) = (symbols.clone(), Vec::new());
        break_it(&mut symbols);
        symbols.encode(&mut payload);
        assert!(Symbols::decode(&payload).is_err(), "broken index {i}");
    }
    // The first traces end in front of the languages, of which there is one here, of location 1.
    let mut payload = whole;
    assert_eq!(payload[payload.len() - 3..], [1, 1, 1]);
    let first = Symbols::decode(&payload[..payload.len() - 3]).unwrap();
    assert_eq!(first.locations[1].frames[0].language, Language::Native);
    *payload.last_mut().unwrap() = 99;
    assert_eq!(Symbols::decode(&payload).unwrap(), first, "the language of a later version");
    let last = payload.len() - 2;
    payload[last] = 2;
    assert!(Symbols::decode(&payload).is_err(), "a location that is not there");
}
