//! The test of a link over the simulated channel: what was put in is what the fit must find again.

use anyhow::{Result, ensure};
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_linktest::{COUNT_MAX, Flight, Record, Test};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_wire::{DATAGRAM_LEN_MAX, VehicleId};

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const HEIGHT_M: f64 = 30.0;

/// Two aircraft at one height: the receiver hovers, the sender flies away from it to the east.
#[derive(Clone, Debug, PartialEq)]
pub struct Away {
    /// The channel between them.
    pub model: Model,
    /// How often its loss is drawn.
    pub draw: Draw,
    /// Datagrams a second.
    pub rate_hz: f64,
    /// UDP payload of each, bytes.
    pub payload_bytes: u32,
    /// How far the sender flies, metres.
    pub until_m: f64,
    /// How fast, metres per second.
    pub speed_m_s: f64,
}

impl Away {
    /// The published tests' rate and size (thesis section 4.1.3.2: 50 datagrams a second), to beyond the range of 802.11a.
    pub fn over(model: Model) -> Self {
        let (draw, payload_bytes) = (Draw::PerPacket, DATAGRAM_LEN_MAX as u32);
        Self { model, draw, rate_hz: 50.0, payload_bytes, until_m: 1_500.0, speed_m_s: 5.0 }
    }

    /// Flies it once.
    ///
    /// # Errors
    /// A number that no test has, with what was expected.
    pub fn fly(&self, number: u32, seed: u64) -> Result<Record> {
        let Self { rate_hz, until_m, speed_m_s, payload_bytes, .. } = *self;
        ensure!((1.0..=100.0).contains(&rate_hz), "rate: found {rate_hz} Hz, expected 1 to 100");
        ensure!((0.1..=30.0).contains(&speed_m_s), "speed: found {speed_m_s} m/s, expected 0.1 to 30");
        let (most, count) = (DATAGRAM_LEN_MAX as u32, until_m / speed_m_s * rate_hz);
        ensure!(
            (1..=most).contains(&payload_bytes),
            "size: found {payload_bytes} bytes, expected 1 to {most}"
        );
        let counts = 1.0..=f64::from(COUNT_MAX);
        ensure!(counts.contains(&count), "datagrams: found {count}, expected 1 to {COUNT_MAX}");
        let (from, to) = (VehicleId(1).to_string(), VehicleId(2).to_string());
        let mut record = Record::new(Test { number, from, to, count: count as u32, rate_hz, payload_bytes });
        let mut channel = Channel::new(self.model.clone(), self.draw, seed, 2);
        let (frame, mut receivers) = (Frame::new(HOME), Vec::new());
        let flight = |at: DVec3, velocity_m_s: DVec3| Flight {
            position: frame.to_position(at),
            heading_rad: std::f64::consts::FRAC_PI_2,
            velocity_m_s,
        };
        for sequence in 0..record.test.count {
            let after_s = f64::from(sequence) / rate_hz;
            let positions = [DVec3::new(after_s * speed_m_s, 0.0, HEIGHT_M), DVec3::new(0.0, 0.0, HEIGHT_M)];
            let now = Instant::ZERO + Duration::from_secs_f64(after_s);
            receivers.clear();
            channel.transmit(now, 0, payload_bytes as usize, &positions, &mut receivers);
            let sender = flight(positions[0], DVec3::new(speed_m_s, 0.0, 0.0));
            let receiver = flight(positions[1], DVec3::ZERO);
            record.note(sequence, sender, receiver);
            for _ in &receivers {
                record.add(sequence, sender, receiver);
            }
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_linktest::{Fit, Report};

    use super::*;

    const TESTS: u32 = 4;
    const WIDTH_M: f64 = 50.0;

    fn records(model: Model) -> Vec<Record> {
        let away = Away::over(model);
        (0..TESTS).map(|n| away.fly(n, u64::from(n) + 1).unwrap()).collect()
    }

    /// The fit of tests over a channel holds that channel in every one of its intervals.
    fn recovers(model: &Model) -> Fit {
        // Through their files, as a user has them.
        let records: Vec<Record> =
            records(model.clone()).iter().map(|r| Record::from_csv(&r.to_csv()).unwrap()).collect();
        let fit = Fit::of(&records, WIDTH_M);
        assert_eq!(fit.bins.len(), 30);
        for bin in &fit.bins {
            let (least, most) = bin.interval;
            // Its datagrams are spread evenly over the range, and the channel may have a bend in it.
            let from_m = (bin.distance_m / WIDTH_M).floor() * WIDTH_M;
            let true_loss = (0..500).map(|n| model.loss(from_m + f64::from(n) * 0.1)).sum::<f64>() / 500.0;
            assert!((least..=most).contains(&true_loss), "{true_loss} at {bin:?}");
            // Four tests of 500 datagrams in each range: the interval is narrow enough to say something.
            assert!(most - least < 0.08, "{bin:?}");
        }
        fit
    }

    #[test]
    fn the_published_channel_is_found_again() {
        let fit = recovers(&Model::Ieee80211a);
        let table = fit.table().unwrap();
        let measured = Model::Table(table.rows().into());
        for distance_m in (0..=1_300).map(f64::from) {
            let (found, expected) = (measured.loss(distance_m), Model::Ieee80211a.loss(distance_m));
            assert!((found - expected).abs() < 0.045, "{distance_m} m: {found}, expected {expected}");
        }
        assert_eq!(measured.loss(1_480.0), 1.0);
        // And the table is a channel that is found again in turn.
        recovers(&measured);
    }

    #[test]
    fn another_channel_is_another_table() {
        let rows = [(0.0, 0.3), (400.0, 0.35), (900.0, 0.9), (1_000.0, 1.0)];
        let fit = recovers(&Model::Table(rows.into()));
        assert!(fit.bins.iter().any(|bin| {
            let (least, most) = bin.interval;
            !(least..=most).contains(&Model::Ieee80211a.loss(bin.distance_m))
        }));
    }

    #[test]
    fn a_report_of_it_has_what_was_flown() {
        let record = Away { speed_m_s: 10.0, ..Away::over(Model::Ieee80211a) }.fly(0, 1).unwrap();
        let report = Report::of(&record);
        let mean = |name: &str| report.parameters.iter().find(|(n, _)| *n == name).unwrap().1.mean;
        assert_eq!(report.sent, 7_500);
        assert!((mean("sender_speed_m_s") - 10.0).abs() < 0.01 && mean("receiver_speed_m_s") == 0.0);
        assert!(mean("relative_angle_deg").abs() < 1.0 && (mean("receiver_altitude_m") - 80.0).abs() < 0.01);
        // Beyond 1350 m nothing is received: 750 in a row.
        assert!(report.burst_length.unwrap().range.1 >= 750.0);
    }

    #[test]
    fn numbers_that_no_test_has_are_refused() {
        let away = Away::over(Model::Unrestricted);
        for (bad, words) in [
            (Away { rate_hz: 0.0, ..away.clone() }, "rate: found 0 Hz, expected 1 to 100"),
            (Away { rate_hz: f64::NAN, ..away.clone() }, "rate: found NaN"),
            (Away { payload_bytes: 1_473, ..away.clone() }, "size: found 1473 bytes"),
            (Away { speed_m_s: 0.0, ..away.clone() }, "speed: found 0"),
            (Away { speed_m_s: 0.1, ..away.clone() }, "datagrams: found 750000"),
            (Away { until_m: f64::NAN, ..away }, "datagrams: found NaN"),
        ] {
            let message = bad.fly(0, 1).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
