//! What reaches the journal's logger: the text as it was written, and every field under a name of its own.

use std::sync::{Arc, Mutex};

use log::kv::{Error, Key, Value, VisitSource};
use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _};
use wingbeat_onboard::journal::Journal;

#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<Record>>>);

/// Level, text, fields.
type Record = (log::Level, String, Vec<(String, String)>);

struct Fields(Vec<(String, String)>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        self.0.push((key.as_str().into(), value.to_string()));
        Ok(())
    }
}

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let mut fields = Fields(vec![]);
        record.key_values().visit(&mut fields).unwrap();
        self.0.lock().unwrap().push((record.level(), record.args().to_string(), fields.0));
    }
    fn flush(&self) {}
}

#[test]
fn an_event_keeps_its_text_and_its_fields_become_the_journals() {
    let records = Records::default();
    let subscriber =
        tracing_subscriber::registry().with(EnvFilter::new("info")).with(Journal::new(records.clone()));
    tracing::subscriber::with_default(subscriber, || {
        let (aircraft, protocol, state) = ("one \"1\"", "muscop", "Start");
        tracing::warn!(aircraft, protocol, state, "the radio is {}", "down");
        tracing::info!(error = %std::fmt::Error, count = 3, "counted");
        tracing::debug!(aircraft, "too quiet");
    });
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        *records.0.lock().unwrap(),
        [
            (
                log::Level::Warn,
                "the radio is down".to_owned(),
                vec![
                    pair("WINGBEAT_AIRCRAFT", "one \"1\""),
                    pair("WINGBEAT_PROTOCOL", "muscop"),
                    pair("WINGBEAT_STATE", "Start"),
                ],
            ),
            (
                log::Level::Info,
                "counted".to_owned(),
                vec![pair("WINGBEAT_ERROR", &std::fmt::Error.to_string()), pair("WINGBEAT_COUNT", "3")],
            ),
        ]
    );
}
