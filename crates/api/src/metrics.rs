//! What a state comes to in Prometheus' text format (version 0.0.4), for both services. Names have their unit at their end, counters
//! `_total`, as Prometheus' conventions ask; what is not known has no sample.

use std::fmt::Write as _;

use serde::Serialize;

use crate::aircraft::{AircraftStatus, LinkState, Refusal};

/// What a scrape is answered as.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Families of samples, in the order in which they were begun.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    families: Vec<Family>,
}

#[derive(Clone, Debug)]
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

/// A label's name and its value.
pub type Label<'a> = (&'a str, &'a str);

impl Metrics {
    /// A value that goes up and down.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, labels: &[Label<'_>], value: f64) {
        debug_assert!(!name.ends_with("_total"), "{name}: that is a counter's name");
        self.sample(name, "gauge", help, labels, value);
    }

    /// A value that only goes up, until its source starts anew.
    pub fn counter(&mut self, name: &'static str, help: &'static str, labels: &[Label<'_>], value: u64) {
        debug_assert!(name.ends_with("_total"), "{name}: a counter's name ends with _total");
        self.sample(name, "counter", help, labels, value as f64);
    }

    fn sample(
        &mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
        labels: &[Label<'_>],
        value: f64,
    ) {
        let place = self.families.iter().position(|family| family.name == name);
        let place = place.unwrap_or_else(|| {
            self.families.push(Family { name, kind, help, samples: String::new() });
            self.families.len() - 1
        });
        let samples = &mut self.families[place].samples;
        samples.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // Writing to text does not fail.
            let _ = write!(samples, "{}{label}=\"{value}\"", if index == 0 { '{' } else { ',' });
        }
        if !labels.is_empty() {
            samples.push('}');
        }
        let _ = match value {
            f64::INFINITY => writeln!(samples, " +Inf"),
            f64::NEG_INFINITY => writeln!(samples, " -Inf"),
            value => writeln!(samples, " {value}"),
        };
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Family { name, kind, help, samples } in &self.families {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }

    fn refused(&mut self, name: &'static str, help: &'static str, aircraft: &str, refused: &[Refusal]) {
        for Refusal { reason, count } in refused {
            self.counter(name, help, &[("aircraft", aircraft), ("reason", reason)], *count);
        }
    }

    /// The service itself.
    pub fn service(&mut self, service: &str, version: &str, name: &str) {
        let labels = [("service", service), ("version", version), ("name", name)];
        self.gauge("wingbeat_build_info", "Which service this is, and its version; always 1.", &labels, 1.0);
    }

    /// All that is measured of one aircraft.
    pub fn aircraft(&mut self, status: &AircraftStatus) {
        let id = status.id.as_str();
        let of = [("aircraft", id)];
        let truth = |is: bool| f64::from(u8::from(is));
        let firmware = status.flight_controller.firmware.as_deref().unwrap_or_default();
        let about = [
            ("aircraft", id),
            ("name", &status.name),
            ("protocol", &status.protocol),
            ("firmware", firmware),
        ];
        self.gauge("wingbeat_aircraft_info", "Who an aircraft is; always 1.", &about, 1.0);
        let state = [("aircraft", id), ("state", &word(&status.state)), ("phase", &word(&status.phase))];
        self.gauge("wingbeat_aircraft_state", "Its protocol's state and phase; always 1.", &state, 1.0);
        self.gauge(
            "wingbeat_aircraft_engaged",
            "Whether its agent commands it (1).",
            &of,
            truth(status.engaged),
        );
        self.gauge(
            "wingbeat_aircraft_failsafe",
            "Whether its flight controller's failsafe has it (1).",
            &of,
            truth(status.failsafe),
        );
        let required = status.checks.iter().filter(|check| check.is_required && !check.passed).count();
        self.gauge(
            "wingbeat_checks_failed",
            "Required preflight checks that have not passed.",
            &of,
            required as f64,
        );
        self.autopilot(status, &of, truth);
        self.links(status, &of, truth);
        let log = &status.log;
        self.counter("wingbeat_log_records_total", "Records written to the flight log.", &of, log.written);
        self.counter("wingbeat_log_records_lost_total", "Records that the flight log lost.", &of, log.lost);
        if let Some(separation) = &status.separation {
            self.separation(separation, &of, truth);
        }
    }

    fn autopilot(&mut self, status: &AircraftStatus, of: &[Label<'_>], truth: impl Fn(bool) -> f64) {
        let autopilot = &status.flight_controller;
        self.gauge(
            "wingbeat_autopilot_link_up",
            "Whether the companion receives its flight controller (1).",
            of,
            truth(autopilot.link == LinkState::Up),
        );
        if let Some(age) = autopilot.heartbeat_age_ms {
            let help = "Since the flight controller's last heartbeat.";
            self.gauge("wingbeat_autopilot_heartbeat_age_seconds", help, of, age as f64 / 1e3);
        }
        self.gauge("wingbeat_autopilot_armed", "Whether motors are armed (1).", of, truth(autopilot.armed));
        let id = status.id.as_str();
        self.refused(
            "wingbeat_autopilot_frames_refused_total",
            "What was dropped of the flight controller's bytes.",
            id,
            &autopilot.refused,
        );
        if let Some(now) = &status.navigation {
            for (name, help, value) in [
                ("wingbeat_latitude_degrees", "Latitude, north positive.", now.position.latitude_deg),
                ("wingbeat_longitude_degrees", "Longitude, east positive.", now.position.longitude_deg),
                ("wingbeat_altitude_meters", "Above mean sea level.", now.position.altitude_m),
                ("wingbeat_height_meters", "Above home.", now.height_m),
                ("wingbeat_ground_speed_meters_per_second", "Over ground.", now.ground_speed_m_s),
                ("wingbeat_climb_meters_per_second", "Up positive.", now.climb_m_s),
            ] {
                self.gauge(name, help, of, value);
            }
        }
        if let Some(battery) = &status.measurements.battery {
            self.gauge("wingbeat_battery_volts", "Voltage of the battery.", of, battery.voltage_v);
            if let Some(current_a) = battery.current_a {
                self.gauge("wingbeat_battery_amperes", "Current of the battery.", of, current_a);
            }
            if let Some(percent) = battery.remaining_percent {
                let help = "Remaining charge, 0 to 1.";
                self.gauge("wingbeat_battery_charge_ratio", help, of, f64::from(percent) / 100.0);
            }
        }
        if let Some(gnss) = &status.measurements.gnss {
            let help = "GPS_FIX_TYPE of MAVLink: 3 is a fix in three dimensions.";
            self.gauge("wingbeat_gnss_fix_type", help, of, f64::from(gnss.fix_type));
            if let Some(satellites) = gnss.satellites {
                self.gauge("wingbeat_gnss_satellites", "Satellites in use.", of, f64::from(satellites));
            }
        }
    }

    fn links(&mut self, status: &AircraftStatus, of: &[Label<'_>], truth: impl Fn(bool) -> f64) {
        let id = status.id.as_str();
        let radio = &status.radio;
        self.gauge(
            "wingbeat_radio_up",
            "Whether the radio can send and receive (1).",
            of,
            truth(radio.down.is_none()),
        );
        self.gauge("wingbeat_radio_secured", "Whether datagrams are signed (1).", of, truth(radio.secured));
        self.counter("wingbeat_radio_datagrams_sent_total", "Datagrams sent.", of, radio.sent);
        self.counter("wingbeat_radio_datagrams_received_total", "Datagrams accepted.", of, radio.received);
        let help = "Datagrams refused.";
        self.refused("wingbeat_radio_datagrams_refused_total", help, id, &radio.refused);
        let help = "Connections and requests that the aircraft's API refused.";
        self.refused("wingbeat_http_refused_total", help, id, &status.http.refused);
        if let Some(gateway) = &status.gateway {
            let help = "Ground stations at the gateway.";
            self.gauge("wingbeat_gateway_clients", help, of, gateway.clients.len() as f64);
            let help = "Frames that the gateway did not pass on.";
            self.refused("wingbeat_gateway_frames_refused_total", help, id, &gateway.refused);
        }
        let help = "Whether a console holds the aircraft's lease (1).";
        self.gauge("wingbeat_lease_held", help, of, truth(status.lease.is_some()));
    }

    fn separation(&mut self, separation: &crate::Separation, of: &[Label<'_>], truth: impl Fn(bool) -> f64) {
        if let Some(nearest) = &separation.nearest {
            self.gauge("wingbeat_nearest_meters", "To the nearest other aircraft.", of, nearest.distance_m);
        }
        if let Some(least) = &separation.flight_minimum {
            let help = "To the nearest other aircraft on this flight, or the last.";
            self.gauge("wingbeat_flight_nearest_meters", help, of, least.distance_m);
        }
        let help = "Whether an encounter alarms (1).";
        self.gauge("wingbeat_separation_alarmed", help, of, truth(separation.alarmed));
        // They begin anew with each flight.
        let help = "Encounters of the flight that alarmed.";
        self.gauge("wingbeat_flight_separation_alarms", help, of, f64::from(separation.alarms));
        let help = "Encounters of the flight that were nearer than a collision.";
        self.gauge("wingbeat_flight_collisions", help, of, f64::from(separation.collisions));
    }
}

/// A word of the API, as JSON has it.
fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_with_their_family_and_labels_are_escaped() {
        let mut metrics = Metrics::default();
        metrics.gauge("wingbeat_height_meters", "Above home.", &[("aircraft", "1")], 20.5);
        metrics.counter("wingbeat_sent_total", "Sent.", &[], 7);
        metrics.gauge(
            "wingbeat_height_meters",
            "Above home.",
            &[("aircraft", "a\"\\\nb"), ("x", "y")],
            f64::INFINITY,
        );
        assert_eq!(
            metrics.text(),
            "# HELP wingbeat_height_meters Above home.\n# TYPE wingbeat_height_meters gauge\n\
             wingbeat_height_meters{aircraft=\"1\"} 20.5\n\
             wingbeat_height_meters{aircraft=\"a\\\"\\\\\\nb\",x=\"y\"} +Inf\n\
             # HELP wingbeat_sent_total Sent.\n# TYPE wingbeat_sent_total counter\nwingbeat_sent_total 7\n"
        );
    }
}
