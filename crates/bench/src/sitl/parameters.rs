//! The parameters that an ArduCopter process starts with, as the text of a defaults file.
//!
//! 4.x ignores names that it does not know, and 3.5.7 ends at one: these are names of 3.5.7, so one file serves both.

use anyhow::{Result, ensure};
use wingbeat_sim::motion::WindParameters;

/// What a bench asks of the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted<'a> {
    /// Speed between waypoints, metres per second.
    pub speed_m_s: f64,
    /// The air; gusts are the simulated flight controller's own.
    pub wind: WindParameters,
    /// Write a binary log.
    pub log: bool,
    /// Telemetry of SERIAL1 and SERIAL0, messages per second.
    pub position_hz: u8,
    /// Lines of the user's own file: after ours, before the speed.
    pub extra: &'a str,
}

/// A multicopter of frame X with a calibrated compass and calibrated accelerometers, a receiver that is
/// switched on, and a battery that lasts: the aircraft of the published figures (`ardusim`'s defaults as
/// facts; <https://ardupilot.org/copter/docs/parameters.html>).
const BASE: &[(&str, f64)] = &[
    ("EK2_ENABLE", 1.0),
    ("FRAME_CLASS", 1.0),
    ("FRAME_TYPE", 0.0),
    ("MAG_ENABLE", 1.0),
    ("COMPASS_LEARN", 0.0),
    // The simulated compass is off by so much; an aircraft configured with it may arm.
    ("COMPASS_OFS_X", 5.0),
    ("COMPASS_OFS_Y", 13.0),
    ("COMPASS_OFS_Z", -18.0),
    ("COMPASS_OFS2_X", 5.0),
    ("COMPASS_OFS2_Y", 13.0),
    ("COMPASS_OFS2_Z", -18.0),
    // Not zero, or the accelerometers count as not calibrated.
    ("INS_ACCOFFS_X", 0.001),
    ("INS_ACCOFFS_Y", 0.001),
    ("INS_ACCOFFS_Z", 0.001),
    ("INS_ACCSCAL_X", 1.001),
    ("INS_ACCSCAL_Y", 1.001),
    ("INS_ACCSCAL_Z", 1.001),
    ("INS_ACC2OFFS_X", 0.001),
    ("INS_ACC2OFFS_Y", 0.001),
    ("INS_ACC2OFFS_Z", 0.001),
    ("INS_ACC2SCAL_X", 1.001),
    ("INS_ACC2SCAL_Y", 1.001),
    ("INS_ACC2SCAL_Z", 1.001),
    ("MOT_THST_EXPO", 0.5),
    ("MOT_THST_HOVER", 0.36),
    ("FS_THR_ENABLE", 1.0),
    ("BATT_MONITOR", 4.0),
    // Without end, as the published flights had it.
    ("BATT_CAPACITY", 500_000_000.0),
    ("FLTMODE1", 7.0),
    ("FLTMODE2", 9.0),
    ("FLTMODE3", 6.0),
    ("FLTMODE4", 3.0),
    ("FLTMODE5", 5.0),
    ("FLTMODE6", 0.0),
    ("SUPER_SIMPLE", 0.0),
    ("SIM_GPS_DELAY", 1.0),
    ("SIM_ACC_RND", 0.0),
    ("SIM_GYR_RND", 0.0),
    ("SIM_BARO_RND", 0.0),
    ("SIM_MAG_RND", 0.0),
    ("SIM_WIND_SPD", 0.0),
    ("SIM_WIND_TURB", 0.0),
];

/// Factor on the wind parameter of SITL for the wind at this height: below 60 m it gives the square
/// root of the height's share (AP_HAL_SITL, SITL_State.cpp).
pub fn wind_gradient(height_m: f64) -> f64 {
    (60.0 / height_m.clamp(1.0, 60.0)).sqrt()
}

/// The text of the file.
pub fn file(wanted: &Wanted<'_>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: f64| text.push_str(&format!("{name} {value}\n"));
    for (name, value) in BASE {
        line(name, *value);
    }
    for channel in 1..=8 {
        for (end, value) in [("MIN", 1000.0), ("TRIM", 1500.0), ("MAX", 2000.0)] {
            line(&format!("RC{channel}_{end}"), value);
        }
    }
    // SERIAL1 is ours to watch: position, attitude with the simulator's own place, time, the EKF's state.
    let hz = f64::from(wanted.position_hz);
    for (group, value) in [("POSITION", hz), ("EXTRA1", hz), ("EXTRA3", 2.0), ("EXT_STAT", 2.0)] {
        line(&format!("SR1_{group}"), value);
    }
    if !wanted.log {
        line("LOG_BITMASK", 0.0);
    }
    text.push_str(wanted.extra);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if wanted.wind.speed_m_s > 0.0 {
        let from_deg = wanted.wind.direction_rad.to_degrees().round();
        text.push_str(&format!("SIM_WIND_SPD {}\nSIM_WIND_DIR {from_deg}\n", wanted.wind.speed_m_s));
    }
    text.push_str(&format!("WPNAV_SPEED {}\n", (wanted.speed_m_s * 100.0).round()));
    text
}

/// Checks a defaults file of the user's: a name and a number on each line, `#` begins a comment.
///
/// # Errors
/// The first line that is something else.
pub fn check(text: &str) -> Result<()> {
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        let words: Vec<&str> = content.split([' ', '\t', ',']).filter(|w| !w.is_empty()).collect();
        let good = matches!(words[..], [name, value]
            if name.len() <= 16 && name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
                && value.parse::<f64>().is_ok_and(f64::is_finite));
        ensure!(good, "line {}: found \"{content}\", expected a parameter's name and its value", number + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_file_is_one_that_we_would_take_and_the_plans_speed_is_last() {
        let wanted = Wanted {
            speed_m_s: 7.5,
            wind: WindParameters::default(),
            log: false,
            position_hz: 10,
            extra: "WPNAV_SPEED 100",
        };
        let text = file(&wanted);
        check(&text).unwrap();
        assert!(text.ends_with("WPNAV_SPEED 100\nWPNAV_SPEED 750\n"), "{text}");
        assert!(text.contains("LOG_BITMASK 0\n"));
        assert!(!file(&Wanted { log: true, ..wanted }).contains("LOG_BITMASK"));
    }

    #[test]
    fn the_wind_is_that_of_the_flights_height() {
        assert_eq!([60.0, 100.0, 15.0].map(wind_gradient), [1.0, 1.0, 2.0]);
        let wind = WindParameters {
            speed_m_s: 5.0,
            direction_rad: core::f64::consts::FRAC_PI_2,
            ..WindParameters::default()
        };
        let text = file(&Wanted { speed_m_s: 7.5, wind, log: false, position_hz: 10, extra: "" });
        assert!(text.contains("SIM_WIND_SPD 5\nSIM_WIND_DIR 90\n"), "{text}");
    }

    #[test]
    fn a_line_that_is_no_parameter_is_named() {
        check("# nothing\n\nFRAME_CLASS,1\nRTL_ALT\t1500 # high\n").unwrap();
        for bad in
            ["RTL_ALT", "RTL_ALT high", "rtl_alt 5", "RTL_ALT NaN", "RTL_ALT 1 2", "A234567890123456_ 1"]
        {
            let message = check(&format!("FRAME_CLASS 1\n{bad}\n")).unwrap_err().to_string();
            assert!(message.contains("line 2") && message.contains(bad), "{message}");
        }
    }
}
