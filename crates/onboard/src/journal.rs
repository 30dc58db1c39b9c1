//! From tracing's events to the journal's records, field by field.
//!
//! tracing's own bridge to the crate `log` writes an event's fields into its text, where it cannot be searched
//! for them. This layer hands them on as key-values, which `systemd-journal-logger` stores as fields of the
//! journal: `aircraft` is `WINGBEAT_AIRCRAFT`, `state` is `WINGBEAT_STATE`, and so on
//! (`journalctl -u wingbeatd WINGBEAT_STATE=Start`). The text stays the text
//! (`docs/decisions/0002-journal-logger.md`).

use std::fmt::{Debug, Write as _};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

/// What every field's name begins with in the journal.
const PREFIX: &str = "WINGBEAT_";
/// The field that tracing gives an event's text.
const MESSAGE: &str = "message";

/// A layer that hands every event to a logger of the crate `log`: the journal's.
#[derive(Clone, Debug)]
pub struct Journal<L>(L);

impl<L: log::Log> Journal<L> {
    /// Writes to this logger.
    pub fn new(logger: L) -> Self {
        Self(logger)
    }
}

impl<L: log::Log + 'static, S: Subscriber> Layer<S> for Journal<L> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut parts = Parts::default();
        event.record(&mut parts);
        let metadata = event.metadata();
        self.0.log(
            &log::Record::builder()
                .level(match *metadata.level() {
                    Level::ERROR => log::Level::Error,
                    Level::WARN => log::Level::Warn,
                    Level::INFO => log::Level::Info,
                    Level::DEBUG => log::Level::Debug,
                    Level::TRACE => log::Level::Trace,
                })
                .target(metadata.target())
                .module_path(metadata.module_path())
                .file(metadata.file())
                .line(metadata.line())
                .key_values(&parts.fields)
                .args(format_args!("{}", parts.message))
                .build(),
        );
    }
}

/// An event taken apart.
#[derive(Default)]
struct Parts {
    message: String,
    fields: Vec<(String, String)>,
}

impl Parts {
    fn put(&mut self, field: &Field, value: String) {
        if field.name() == MESSAGE {
            self.message = value;
        } else {
            self.fields.push((format!("{PREFIX}{}", field.name().to_ascii_uppercase()), value));
        }
    }
}

impl Visit for Parts {
    /// Text as it is; `record_debug` would put it into quotes.
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // A value that cannot be shown is an empty one; a String takes whatever is written.
        let _ = write!(text, "{value:?}");
        self.put(field, text);
    }
}
