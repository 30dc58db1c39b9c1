//! The fleet's picture in Prometheus' text format.

use wingbeat_api::metrics::Metrics;
use wingbeat_api::{AuditLog, FleetPicture, LinkState};

/// All that is known of the service and of its aircraft. One that has fallen silent keeps its last values; its link and the age
/// of its last message tell how old they are.
pub(crate) fn text(picture: &FleetPicture, audit: &AuditLog) -> String {
    let mut metrics = Metrics::default();
    metrics.service("ground", &picture.version, &picture.console);
    let started = picture.started_unix_ms as f64 / 1e3;
    metrics.gauge("wingbeat_start_time_seconds", "When the service started, since 1970, UTC.", &[], started);
    metrics.counter(
        "wingbeat_audit_lost_total",
        "Entries that did not reach the log of what was done.",
        &[],
        audit.lost,
    );
    let help = "Refused requests without an entry in the log of what was done.";
    metrics.counter("wingbeat_audit_suppressed_total", help, &[], audit.suppressed);
    if let Some(base) = &picture.corrections {
        let help = "Frames of the base station that were broadcast.";
        metrics.counter("wingbeat_corrections_frames_total", help, &[], base.frames);
        let help = "Whether the base station can be received (1).";
        metrics.gauge("wingbeat_base_station_up", help, &[], f64::from(u8::from(base.problem.is_none())));
        if let Some(age) = base.age_ms {
            let help = "Since the last frame was broadcast.";
            metrics.gauge("wingbeat_corrections_age_seconds", help, &[], age as f64 / 1e3);
        }
    }
    if let Some(listening) = &picture.listening {
        let help = "Whether the radio by which aircraft are found receives (1).";
        metrics.gauge("wingbeat_listening_up", help, &[], f64::from(u8::from(listening.problem.is_none())));
        let help = "Aircraft of which that radio received a datagram in the last 10 s.";
        metrics.gauge("wingbeat_listening_aircraft", help, &[], f64::from(listening.received));
        for refusal in &listening.refused {
            let help = "Datagrams by which no aircraft was found, by why they were refused.";
            let of = [("reason", refusal.reason.as_str())];
            metrics.counter("wingbeat_listening_refused_total", help, &of, refusal.count);
        }
    }
    for aircraft in &picture.aircraft {
        let id = aircraft.status.as_ref().map_or("", |status| &status.id);
        let of = [("aircraft", id), ("address", aircraft.address.as_str())];
        let is_up = f64::from(u8::from(aircraft.link == LinkState::Up));
        let help = "Whether the ground service receives the aircraft's daemon (1).";
        metrics.gauge("wingbeat_aircraft_link_up", help, &of, is_up);
        if let Some(age) = aircraft.age_ms {
            let help = "Since the aircraft's last message.";
            metrics.gauge("wingbeat_aircraft_message_age_seconds", help, &of, age as f64 / 1e3);
        }
        if let Some(status) = &aircraft.status {
            metrics.aircraft(status);
        }
    }
    metrics.text()
}
