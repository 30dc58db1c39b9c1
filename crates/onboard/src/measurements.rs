//! The autopilot's measurements as the API shows them.

use wingbeat_agent::energy::EnergyStatus;
use wingbeat_agent::{ClockStatus, CorrectionRefused, CorrectionsStatus, RemoteIdStatus, Status};
use wingbeat_api::{self as api, measurements as shown};
use wingbeat_autopilot::telemetry::measurements::{Battery, Gnss, Measurements, Wind, Worst};
use wingbeat_geo::{Duration, Instant};

use crate::status::refusals;

/// A field that is not converted does not compile.
#[deny(unused_variables)]
pub(crate) fn measurements(status: &Status, is_clock_fed: bool) -> api::Measurements {
    // The checks before a flight report the filter.
    let Measurements { battery, gnss, wind, filter: _ } = &status.measured;
    api::Measurements {
        battery: battery.as_ref().and_then(|battery| convert_battery(battery, status.energy)),
        gnss: gnss.as_ref().map(convert_gnss),
        corrections: status.corrections.as_ref().map(|c| convert_corrections(c, status.at)),
        wind: wind.as_ref().map(convert_wind),
        clock: status.clock.as_ref().map(|clock| convert_clock(clock, is_clock_fed)),
        remote_id: status.remote_id.as_ref().map(convert_remote_id),
    }
}

/// Absent where nothing of any battery is measured.
fn convert_battery(battery: &Battery, energy: Option<EnergyStatus>) -> Option<shown::Battery> {
    let Battery { voltage_v: _, current_a, remaining_percent: _, cells_v, consumed_mah, packs: _ } = battery;
    let worst = battery.worst(energy.map_or(0, |energy| energy.other_batteries))?;
    let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    let batteries: Vec<_> = battery.readings().map(convert_reading).collect();
    Some(shown::Battery {
        remaining_percent: worst.remaining_percent,
        voltage_v: worst.voltage_v.unwrap_or_default(),
        current_a: *current_a,
        cells_v: cells_v.iter().map(|&v| (f64::from(v) * 1e3).round() / 1e3).collect(),
        consumed_mah: *consumed_mah,
        left_s: energy.and_then(|energy| energy.left).map(seconds),
        needed_s: energy.and_then(|energy| energy.needed).map(seconds),
        batteries: if batteries.len() > 1 { batteries } else { Vec::new() },
    })
}

fn convert_reading(reading: Worst) -> shown::OneBattery {
    let Worst { number, voltage_v, remaining_percent, state } = reading;
    let voltage_v = voltage_v.map(|v| (v * 1e3).round() / 1e3);
    shown::OneBattery { number, remaining_percent, voltage_v, state: state.name().to_owned() }
}

fn convert_gnss(gnss: &Gnss) -> shown::Gnss {
    let Gnss { fix_type, satellites, accuracy_m, hdop: _ } = *gnss;
    shown::Gnss { fix_type, satellites, accuracy_m }
}

fn convert_corrections(corrections: &CorrectionsStatus, now: Instant) -> shown::Corrections {
    let CorrectionsStatus { base, bytes_s, injected, refused } = corrections;
    let counts = CorrectionRefused::ALL.into_iter().zip(refused);
    shown::Corrections {
        console: base.map(|(console, _)| console.to_string()),
        age_ms: base.map(|(_, at)| now.since(at).as_millis() as u64),
        bytes_s: *bytes_s,
        frames: (*injected).into(),
        refused: refusals(counts.map(|(reason, count)| (reason.name(), (*count).into()))),
    }
}

fn convert_clock(clock: &ClockStatus, is_fed: bool) -> shown::Clock {
    let ClockStatus { gnss, ahead_us } = *clock;
    shown::Clock { gnss_unix_us: gnss.unix_us, error_us: gnss.error_us, ahead_us, is_fed }
}

fn convert_remote_id(remote_id: &RemoteIdStatus) -> shown::RemoteId {
    let RemoteIdStatus { uas_id, operator, may_arm, detail } = remote_id;
    shown::RemoteId {
        uas_id: uas_id.as_str().into(),
        may_arm: *may_arm,
        detail: detail.as_str().into(),
        operator_latitude_deg: operator.map(|place| f64::from(place.latitude_e7) * 1e-7),
        operator_longitude_deg: operator.map(|place| f64::from(place.longitude_e7) * 1e-7),
    }
}

fn convert_wind(wind: &Wind) -> shown::Wind {
    let Wind { speed_m_s, from_rad } = *wind;
    shown::Wind { speed_m_s, from_deg: from_rad.to_degrees().rem_euclid(360.0) }
}
