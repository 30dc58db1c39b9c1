//! The journal's logger is one of the crate `log`. tracing stops handing events to `log` for ever once any
//! subscriber has been set, unless its feature `log-always` is on (docs/decisions/0002-journal-logger.md).

use std::sync::Mutex;

static RECORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Records;

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        RECORDS.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
    }
    fn flush(&self) {}
}

#[test]
fn an_event_reaches_the_logger_even_after_a_subscriber_was_set() {
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    log::set_logger(&Records).unwrap();
    log::set_max_level(log::LevelFilter::Info);
    tracing::warn!(aircraft = "one", "the radio is down");
    tracing::debug!("too quiet");
    let records = RECORDS.lock().unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    assert!(records[0].starts_with("WARN the radio is down") && records[0].contains("one"), "{records:?}");
}
