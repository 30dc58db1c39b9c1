//! The autopilot's measurements as the API shows them.

use wingbeat_api::{self as api, measurements as shown};
use wingbeat_autopilot::telemetry::measurements::{Battery, Gnss, Measurements, Wind};

/// A field that is not converted does not compile.
#[deny(unused_variables)]
pub(crate) fn measurements(measured: &Measurements) -> api::Measurements {
    let Measurements { battery, gnss, wind } = measured;
    api::Measurements {
        battery: battery.as_ref().map(convert_battery),
        gnss: gnss.as_ref().map(convert_gnss),
        wind: wind.as_ref().map(convert_wind),
    }
}

fn convert_battery(battery: &Battery) -> shown::Battery {
    let Battery { voltage_v, current_a, remaining_percent, cells_v, consumed_mah } = battery;
    shown::Battery {
        remaining_percent: *remaining_percent,
        voltage_v: *voltage_v,
        current_a: *current_a,
        cells_v: cells_v.iter().map(|&v| (f64::from(v) * 1e3).round() / 1e3).collect(),
        consumed_mah: *consumed_mah,
    }
}

fn convert_gnss(gnss: &Gnss) -> shown::Gnss {
    let Gnss { fix_type, satellites } = *gnss;
    shown::Gnss { fix_type, satellites }
}

fn convert_wind(wind: &Wind) -> shown::Wind {
    let Wind { speed_m_s, from_rad } = *wind;
    shown::Wind { speed_m_s, from_deg: from_rad.to_degrees().rem_euclid(360.0) }
}
