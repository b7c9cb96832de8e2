//! Logs written by hand, with their expected results.

use super::*;

const HEADER: &str = "type\ttick\tcount\theap_live_slots\tmajor_by\tru_maxrss\taccess\t\n";

fn of(lines: &str) -> Result<GcLog, GcLogError> {
    read(format!("{HEADER}{lines}").as_bytes(), &Choice::default())
}

fn sentence(lines: &str) -> String {
    of(lines).expect_err("damaged").to_string()
}

#[test]
fn a_line_gives_its_metrics_by_name() {
    let log = of("start\t1500000000000000\t7\t900\t0\t2048\t3\t\n\
                  end_sweep\t1500000002500000\t7\t500\toldmalloc\t4096\t5\t\n")
    .expect("a log");
    assert_eq!(log.tick, Tick::UnixMicros);
    assert_eq!(log.resident, Some(("ru_maxrss".to_owned(), ResidentUnit::Kibibytes, true)));
    assert_eq!(
        (log.slots_column.as_str(), log.requests_column.as_deref()),
        ("heap_live_slots", Some("access"))
    );
    let row = GcRow {
        event: GcEvent::EndSweep,
        is_major: Some(true),
        tick: 1_500_000_002_500_000.0,
        collections: Some(7),
        live_slots: 500,
        resident_bytes: Some(4_194_304),
        requests: Some(5),
    };
    assert_eq!(log.rows[1], row);
    assert_eq!((log.rows[0].event, log.rows[0].is_major), (GcEvent::Start, Some(false)));
    assert_eq!(log.seconds(&row), Some(2.5));
    assert_eq!(log.warnings, Vec::<String>::new());
}

#[test]
fn columns_may_stand_anywhere_and_have_old_names() {
    let text = "rss\theap_live_slot\ttick\ttype\n56623104\t12\t1500000000\tend_mark\n";
    let log = read(text.as_bytes(), &Choice::default()).expect("a log");
    assert_eq!(log.tick, Tick::UnixSeconds);
    assert_eq!((log.rows[0].live_slots, log.rows[0].resident_bytes), (12, Some(56_623_104)));
    assert_eq!(log.rows[0].event, GcEvent::EndMark);
    assert_eq!(log.resident, Some(("rss".to_owned(), ResidentUnit::Bytes, false)));
}

#[test]
fn the_user_may_say_which_column_and_unit() {
    let choice = Choice {
        resident: Some("heap_live_slots".to_owned()),
        resident_unit: Some(ResidentUnit::Bytes),
        requests: Some("count".to_owned()),
    };
    let log = read(format!("{HEADER}start\t5\t7\t900\t0\t2048\t3\t\n").as_bytes(), &choice).expect("a log");
    assert_eq!((log.rows[0].resident_bytes, log.rows[0].requests), (Some(900), Some(7)));
    assert_eq!(log.tick, Tick::Unknown);
    assert_eq!(log.seconds(&log.rows[0]), None);
    let choice = Choice { requests: Some("hits".to_owned()), ..Choice::default() };
    let error = read(HEADER.as_bytes(), &choice).expect_err("no such column");
    assert_eq!(
        error.to_string(),
        "the log has no column `hits`; there are type, tick, count, heap_live_slots, major_by, ru_maxrss, access"
    );
}

#[test]
fn a_cut_line_and_a_second_header_are_said() {
    let log = of(
        "start\t1\t1\t9\t0\t2048\t3\t\ntype\ttick\tcount\theap_live_slots\tmajor_by\tru_maxrss\taccess\t\n\
                  start\t5\t7\t900\t0\t2048\t3\t\nend_mark\t5\t7\t90",
    )
    .expect("a log");
    assert_eq!(log.rows.len(), 1);
    assert_eq!(
        log.warnings,
        [
            "Line 3 names the columns again: what stands before it belongs to another process and is left out.",
            "1 line has fewer columns than the header and was left out: the process was killed, or two wrote at once.",
        ]
    );
}

#[test]
fn what_is_no_log_is_one_sentence() {
    let none = |text: &str| read(text.as_bytes(), &Choice::default()).expect_err("no log").to_string();
    let no_header = "this is no gc_tracer log: its first line should name columns separated by tabs, `type` and `tick` among them";
    assert_eq!(none(""), no_header);
    assert_eq!(none("a,b,c\n1,2,3\n"), no_header);
    assert_eq!(
        none("type\ttick\tru_utime\t\n"),
        "the log has no column `heap_live_slots`; trace with gc_stat: true, which is the default"
    );
    assert_eq!(
        sentence(""),
        "the log has no line behind its header; tracing ended before the first collection"
    );
    assert_eq!(
        sentence("start\t5\t7\tmany\t0\t2048\t3\t\n"),
        "line 2 of the log makes no sense: a whole number was expected in column `heap_live_slots`"
    );
    assert_eq!(
        sentence("start\tNaN\t7\t1\t0\t2048\t3\t\n"),
        "line 2 of the log makes no sense: a number was expected in column `tick`"
    );
}

#[test]
fn a_log_without_resident_memory_says_how_to_get_it() {
    let log = read(b"type\ttick\theap_live_slots\t\nstart\t5\t7\t\n", &Choice::default()).expect("a log");
    assert_eq!(
        log.warnings,
        [
            "The log has no column of resident memory (rss, rss_bytes, rss_kb, ru_maxrss, maxrss); trace with rusage: \
          true, or with a custom field rss."
        ]
    );
}
