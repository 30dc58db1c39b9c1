//! What the autopilot measures or estimates and an operator sees: from the message to the agent's status.
//!
//! The agent passes [`Measurements`] on whole. A new one is, in this file, a type that implements [`Measurement`] and a
//! field; then a type of the API in `wingbeat_api::measurements`, its conversion in `onboard::measurements`, and a row
//! of the page in `web/src/fleet/measurements.ts`. Each destructures or enumerates all fields: a forgotten step does
//! not compile.

use heapless::Vec;
use mavlink::MessageData;
use wingbeat_geo::Duration;

use super::requests::{EXTENDED_STATUS, EXTRA3, StreamRequest};
use crate::dialect::{
    BATTERY_STATUS_DATA, GPS_RAW_INT_DATA, MavBatteryChargeState, MavBatteryFunction, MavMessage,
    MavModeFlag, SYS_STATUS_DATA, WIND_DATA,
};

/// The last of each; absent before the first report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// The battery; absent where its voltage is not measured.
    pub battery: Option<Battery>,
    /// The satellite navigation receiver.
    pub gnss: Option<Gnss>,
    /// The wind; absent where the autopilot does not estimate it, and on the ground.
    pub wind: Option<Wind>,
    /// The innovations of the autopilot's position filter.
    pub filter: Option<Filter>,
}

impl Measurements {
    #[deny(unused_variables)]
    fn all(&mut self) -> impl IntoIterator<Item = &mut dyn Field> {
        let Self { battery, gnss, wind, filter } = self;
        [battery as &mut dyn Field, gnss, wind, filter]
    }
    /// Applies a message from the autopilot.
    pub fn on_message(&mut self, message: &MavMessage) {
        for field in self.all() {
            field.on_message(message);
        }
    }
    /// The messages that they are read from.
    pub(super) fn requests() -> impl Iterator<Item = &'static StreamRequest> {
        let mut none = Self::default();
        let requests: Vec<&'static [StreamRequest], 16> =
            none.all().into_iter().map(|field| field.requests()).collect();
        requests.into_iter().flatten()
    }
}

/// One value or a group of values that belong together.
trait Measurement: Sized {
    /// The messages that bring it.
    const REQUESTS: &'static [StreamRequest];
    /// Applies a message from the autopilot.
    fn on_message(measured: &mut Option<Self>, message: &MavMessage);
}

/// A field of [`Measurements`].
trait Field {
    fn requests(&self) -> &'static [StreamRequest];
    fn on_message(&mut self, message: &MavMessage);
}

impl<T: Measurement> Field for Option<T> {
    fn requests(&self) -> &'static [StreamRequest] {
        T::REQUESTS
    }
    fn on_message(&mut self, message: &MavMessage) {
        T::on_message(self, message);
    }
}

/// Cells of one battery that MAVLink reports.
pub const CELLS_MAX: usize = 14;
/// Batteries of one aircraft; ArduPilot has as many.
pub const PACKS_MAX: usize = 16;

/// The first battery, and every battery that the autopilot reports by its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Battery {
    /// Volts; 0 where it is not measured.
    pub voltage_v: f64,
    /// Amperes, where measured.
    pub current_a: Option<f64>,
    /// Per cent, where estimated.
    pub remaining_percent: Option<u8>,
    /// Volts of each cell, where measured.
    pub cells_v: Vec<f32, CELLS_MAX>,
    /// Charge drawn so far, milliampere hours, where measured.
    pub consumed_mah: Option<u32>,
    /// Batteries that carry the aircraft, as BATTERY_STATUS reports each, in the order of their numbers.
    pub packs: Vec<Pack, PACKS_MAX>,
}

/// The state that the autopilot reports of a battery, the least severe first
/// (<https://mavlink.io/en/messages/common.html#MAV_BATTERY_CHARGE_STATE>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeState {
    /// Not reported.
    #[default]
    Unknown,
    /// Nothing is wrong.
    Good,
    /// Its monitor fails, or the battery is defective.
    Unhealthy,
    /// Below the limit of the autopilot's low failsafe.
    Low,
    /// The autopilot asks to return or to end the flight at once.
    Critical,
    /// It has failed.
    Failed,
    /// Too low for a return: the autopilot asks for the fastest possible stop.
    Emergency,
}

impl ChargeState {
    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "not known",
            Self::Good => "good",
            Self::Unhealthy => "unhealthy",
            Self::Low => "low",
            Self::Critical => "critical",
            Self::Failed => "failed",
            Self::Emergency => "emergency",
        }
    }

    const fn of(reported: MavBatteryChargeState) -> Self {
        match reported {
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_UNDEFINED => Self::Unknown,
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_OK
            | MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_CHARGING => Self::Good,
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_UNHEALTHY => Self::Unhealthy,
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_LOW => Self::Low,
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_CRITICAL => Self::Critical,
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_FAILED => Self::Failed,
            MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_EMERGENCY => Self::Emergency,
        }
    }
}

/// One battery by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pack {
    /// Its number in MAVLink, from 0.
    pub id: u8,
    /// Volts, where measured.
    pub voltage_v: Option<f32>,
    /// Per cent, where estimated.
    pub remaining_percent: Option<u8>,
    /// The state that the autopilot reports.
    pub state: ChargeState,
    /// Reports of SYS_STATUS since its last report.
    age: u8,
}

impl Pack {
    /// Its number as ArduPilot's parameters count, from 1.
    pub const fn number(&self) -> u8 {
        self.id.saturating_add(1)
    }

    fn of(m: &BATTERY_STATUS_DATA) -> Self {
        let cells = m.voltages.iter().chain(&m.voltages_ext[..]);
        let total_mv: u32 = cells.filter(|&&mv| mv != u16::MAX).map(|&mv| u32::from(mv)).sum();
        Self {
            id: m.id,
            voltage_v: (total_mv > 0).then_some(total_mv as f32 * 1e-3),
            remaining_percent: percent(m.battery_remaining),
            state: ChargeState::of(m.charge_state),
            age: 0,
        }
    }

    fn is_known(&self) -> bool {
        self.voltage_v.is_some() || self.remaining_percent.is_some()
    }
}

/// The battery that a decision is made by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Its number as ArduPilot's parameters count, from 1.
    pub number: u8,
    /// Volts, where measured.
    pub voltage_v: Option<f64>,
    /// Per cent, where estimated.
    pub remaining_percent: Option<u8>,
    /// The state that the autopilot reports.
    pub state: ChargeState,
}

/// A charge as it is reported: 0 to 100, or not estimated.
fn percent(reported: i8) -> Option<u8> {
    u8::try_from(reported).ok().filter(|percent| *percent <= 100)
}

impl Battery {
    fn empty(packs: Vec<Pack, PACKS_MAX>) -> Self {
        Self {
            voltage_v: 0.0,
            current_a: None,
            remaining_percent: None,
            cells_v: Vec::new(),
            consumed_mah: None,
            packs,
        }
    }

    /// Whether anything is measured of any battery.
    fn is_known(&self) -> bool {
        self.voltage_v > 0.0 || self.remaining_percent.is_some() || self.packs.iter().any(Pack::is_known)
    }

    /// Returns each battery's reading: the first as SYS_STATUS has it, the others as BATTERY_STATUS has them. A state that is
    /// reported no longer is not known.
    pub fn readings(&self) -> impl Iterator<Item = Worst> + '_ {
        let first = Worst {
            number: 1,
            voltage_v: (self.voltage_v > 0.0).then_some(self.voltage_v),
            remaining_percent: self.remaining_percent,
            state: self
                .packs
                .iter()
                .find(|pack| pack.id == 0)
                .map_or(ChargeState::Unknown, |pack| self.state_of(pack)),
        };
        let others = self.packs.iter().filter(|pack| pack.id != 0).map(|pack| Worst {
            number: pack.number(),
            voltage_v: pack.voltage_v.map(f64::from),
            remaining_percent: pack.remaining_percent,
            state: self.state_of(pack),
        });
        core::iter::once(first).chain(others).filter(|reading| {
            reading.voltage_v.is_some()
                || reading.remaining_percent.is_some()
                || reading.state > ChargeState::Good
        })
    }

    /// Returns the reading of the worst battery: each figure is the lowest of any battery, under the number of the battery with
    /// the most severe state, and of these with the least charge. Batteries whose bit in `ignored` is set do not count.
    pub fn worst(&self, ignored: u16) -> Option<Worst> {
        let counts =
            |reading: &Worst| ignored >> u32::from(reading.number.saturating_sub(1)).min(15) & 1 == 0;
        let lower = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (known, None) | (None, known) => known,
        };
        self.readings().filter(counts).reduce(|a, b| {
            let rank =
                |of: &Worst| (of.state.max(ChargeState::Good), 101 - of.remaining_percent.unwrap_or(101));
            let percent = [a.remaining_percent, b.remaining_percent].into_iter().flatten().min();
            Worst {
                number: if rank(&b) > rank(&a) { b.number } else { a.number },
                voltage_v: lower(a.voltage_v, b.voltage_v),
                remaining_percent: percent,
                state: a.state.max(b.state),
            }
        })
    }

    /// Returns the number of a battery that was reported and is reported no longer: each is reported in turn. SYS_STATUS reports
    /// the first, too.
    pub fn silent(&self) -> Option<u8> {
        self.packs.iter().find(|pack| pack.id != 0 && self.is_silent(pack)).map(Pack::number)
    }

    fn is_silent(&self, pack: &Pack) -> bool {
        usize::from(pack.age) > 6 * self.packs.len() + 4
    }

    fn state_of(&self, pack: &Pack) -> ChargeState {
        if self.is_silent(pack) { ChargeState::Unknown } else { pack.state }
    }
}

impl Measurement for Battery {
    const REQUESTS: &'static [StreamRequest] = &[
        StreamRequest {
            id: SYS_STATUS_DATA::ID,
            group: EXTENDED_STATUS,
            interval: Duration::from_secs(1),
            is_optional: false,
            rank: 1,
            since_major: 0,
        },
        // Cells and charge are not measured everywhere.
        StreamRequest {
            id: BATTERY_STATUS_DATA::ID,
            group: EXTRA3,
            interval: Duration::from_secs(2),
            is_optional: true,
            rank: 6,
            since_major: 0,
        },
    ];
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn on_message(measured: &mut Option<Self>, message: &MavMessage) {
        match message {
            MavMessage::SYS_STATUS(m) => {
                let mut battery = measured.take().unwrap_or_else(|| Self::empty(Vec::new()));
                for pack in &mut battery.packs {
                    pack.age = pack.age.saturating_add(1);
                }
                // Where no monitor is set ArduPilot reports 0 V and no charge.
                let is_measured = m.voltage_battery != u16::MAX
                    && (m.voltage_battery > 0 || percent(m.battery_remaining).is_some());
                battery.voltage_v = if is_measured { f64::from(m.voltage_battery) * 1e-3 } else { 0.0 };
                battery.current_a =
                    (is_measured && m.current_battery >= 0).then(|| f64::from(m.current_battery) * 1e-2);
                battery.remaining_percent = percent(m.battery_remaining).filter(|_| is_measured);
                *measured = Some(battery).filter(Self::is_known);
            }
            MavMessage::BATTERY_STATUS(m) => {
                // It carries a camera, and not the aircraft.
                if m.battery_function == MavBatteryFunction::MAV_BATTERY_FUNCTION_PAYLOAD {
                    return;
                }
                let mut battery = measured.take().unwrap_or_else(|| Self::empty(Vec::new()));
                battery.on_status(m);
                *measured = Some(battery).filter(Self::is_known);
            }
            _ => {}
        }
    }
}

impl Battery {
    fn on_status(&mut self, m: &BATTERY_STATUS_DATA) {
        let reported = Pack::of(m);
        match self.packs.iter_mut().find(|pack| pack.id == m.id) {
            Some(pack) => *pack = reported,
            None => {
                let at = self.packs.iter().position(|pack| pack.id > m.id).unwrap_or(self.packs.len());
                // More batteries than ArduPilot has are not kept.
                let _ = self.packs.insert(at, reported);
            }
        }
        if m.id != 0 {
            return;
        }
        self.consumed_mah = u32::try_from(m.current_consumed).ok();
        let cells = m.voltages.iter().chain(&m.voltages_ext[..]);
        let known = cells.copied().filter(|&mv| mv != u16::MAX && mv != 0);
        self.cells_v = known.map(|mv| f32::from(mv) / 1e3).collect();
        // The voltage of the whole pack in the field of the first cell is no cell.
        if self.cells_v.len() == 1 {
            self.cells_v.clear();
        }
    }
}

/// What a satellite navigation receiver reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gnss {
    /// GPS_FIX_TYPE: 3 is a three-dimensional fix
    /// (<https://mavlink.io/en/messages/common.html#GPS_FIX_TYPE>).
    pub fix_type: u8,
    /// Satellites in use, where reported.
    pub satellites: Option<u8>,
    /// The receiver's own estimate of its horizontal error, in metres, where reported (`h_acc`; 3.5.7 does not send it).
    pub accuracy_m: Option<f64>,
    /// Horizontal dilution of precision, where reported.
    pub hdop: Option<f64>,
}

/// `GPS_FIX_TYPE_RTK_FLOAT`: from there on, corrections remove the errors that receivers have in common.
const RTK_FLOAT: u8 = 5;
/// Share of `h_acc` that is the standard deviation per axis of the errors that two nearby receivers do not share. Half of the
/// variance is common (satellites, clocks, air), and the rest lies on two axes.
const OWN_SHARE: f64 = 0.5;
/// Standard deviation per axis for a dilution of precision of 1, in metres: 0.58 m of receiver noise and multipath in each range,
/// on two axes.
const RANGE_ERROR_M: f64 = 0.41;

impl Gnss {
    /// Returns the standard deviation, in metres per axis over the ground, of the error that a nearby receiver does not share.
    /// The receiver's own estimate counts first, then its dilution of precision; `None` where it reports neither.
    pub fn error_m(self) -> Option<f64> {
        let share = if self.fix_type >= RTK_FLOAT { core::f64::consts::FRAC_1_SQRT_2 } else { OWN_SHARE };
        let by_estimate = self.accuracy_m.map(|accuracy_m| accuracy_m * share);
        by_estimate.or_else(|| self.hdop.map(|hdop| hdop * RANGE_ERROR_M)).filter(|_| self.has_fix())
    }
    /// Whether it has a position in three dimensions.
    pub fn has_fix(self) -> bool {
        self.fix_type >= 3
    }
}

impl Measurement for Gnss {
    const REQUESTS: &'static [StreamRequest] = &[StreamRequest {
        id: GPS_RAW_INT_DATA::ID,
        group: EXTENDED_STATUS,
        interval: Duration::from_secs(1),
        is_optional: false,
        rank: 3,
        since_major: 0,
    }];
    fn on_message(measured: &mut Option<Self>, message: &MavMessage) {
        if let MavMessage::GPS_RAW_INT(m) = message {
            *measured = Some(Self {
                fix_type: m.fix_type as u8,
                satellites: (m.satellites_visible != u8::MAX).then_some(m.satellites_visible),
                // Version 1 of MAVLink has no `h_acc`; there, and where it is not known, the field is 0.
                accuracy_m: (m.h_acc != 0 && m.h_acc != u32::MAX).then(|| f64::from(m.h_acc) * 1e-3),
                // ArduPilot reports 9999 without a fix.
                hdop: (m.eph != 0 && m.eph < 9_999).then(|| f64::from(m.eph) * 1e-2),
            });
        }
    }
}

/// The innovations of the position filter, each as a share of the largest that it accepts (`EKF_STATUS_REPORT`). ArduPilot's EKF
/// failsafe acts at 0.8 (`FS_EKF_THRESH`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// Of the velocity.
    pub velocity: f64,
    /// Of the position over the ground.
    pub position: f64,
    /// Of the height.
    pub height: f64,
    /// Of the compass.
    pub compass: f64,
}

impl Measurement for Filter {
    // Requested with the position itself (`super::requests`).
    const REQUESTS: &'static [StreamRequest] = &[];
    fn on_message(measured: &mut Option<Self>, message: &MavMessage) {
        if let MavMessage::EKF_STATUS_REPORT(m) = message {
            let all = [m.velocity_variance, m.pos_horiz_variance, m.pos_vert_variance, m.compass_variance];
            let [velocity, position, height, compass] = all.map(f64::from);
            let is_known = all.iter().all(|share| share.is_finite() && *share >= 0.0);
            *measured = is_known.then_some(Self { velocity, position, height, compass });
        }
    }
}

/// The autopilot's estimate of the wind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wind {
    /// Speed of the air over the ground, metres per second.
    pub speed_m_s: f64,
    /// Where it comes from, radians clockwise from north.
    pub from_rad: f64,
}

impl Measurement for Wind {
    // ArduCopter sends it in flight where its filter estimates the drag (`EK3_DRAG_*`). 3.5.7 never does.
    const REQUESTS: &'static [StreamRequest] = &[StreamRequest {
        id: WIND_DATA::ID,
        group: EXTRA3,
        interval: Duration::from_secs(2),
        is_optional: true,
        rank: 7,
        since_major: 4,
    }];
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn on_message(measured: &mut Option<Self>, message: &MavMessage) {
        match message {
            MavMessage::WIND(m) if m.speed.is_finite() && m.direction.is_finite() => {
                let from_rad = f64::from(m.direction).to_radians();
                *measured = Some(Self { speed_m_s: f64::from(m.speed), from_rad });
            }
            // The estimate ends with the flight; no message reports that.
            MavMessage::HEARTBEAT(m) if !m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED) => {
                *measured = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::{EKF_STATUS_REPORT_DATA, GpsFixType, HEARTBEAT_DATA};

    use super::*;

    fn sys_status(voltage_battery: u16) -> MavMessage {
        MavMessage::SYS_STATUS(SYS_STATUS_DATA {
            voltage_battery,
            current_battery: 123,
            battery_remaining: -1,
            ..SYS_STATUS_DATA::DEFAULT
        })
    }

    #[test]
    fn cells_are_reported_where_they_are_measured() {
        let mut measured = Measurements::default();
        let mut battery = |voltages: &[u16]| {
            let mut m = BATTERY_STATUS_DATA { id: 0, current_consumed: 321, ..BATTERY_STATUS_DATA::DEFAULT };
            m.voltages = core::array::from_fn(|i| voltages.get(i).copied().unwrap_or(u16::MAX));
            measured.on_message(&sys_status(12_300));
            measured.on_message(&MavMessage::BATTERY_STATUS(m));
            measured.on_message(&sys_status(12_300));
            measured.battery.clone().unwrap()
        };
        let full = battery(&[4_100, 4_090, 4_110]);
        assert_eq!((&full.cells_v[..], full.consumed_mah), (&[4.1, 4.09, 4.11][..], Some(321)));
        assert_eq!((full.voltage_v, full.current_a, full.remaining_percent), (12.3, Some(1.23), None));
        assert!(battery(&[12_300]).cells_v.is_empty());
    }

    #[test]
    fn the_wind_is_what_was_estimated_in_this_flight() {
        let mut measured = Measurements::default();
        let wind = |direction, speed| MavMessage::WIND(WIND_DATA { direction, speed, speed_z: 0.0 });
        let heartbeat =
            |base_mode| MavMessage::HEARTBEAT(HEARTBEAT_DATA { base_mode, ..HEARTBEAT_DATA::default() });
        measured.on_message(&wind(-90.0, 5.5));
        let west = Wind { speed_m_s: 5.5, from_rad: -core::f64::consts::FRAC_PI_2 };
        assert_eq!(measured.wind, Some(west));
        measured.on_message(&wind(f32::NAN, 1.0));
        measured.on_message(&heartbeat(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED));
        assert_eq!(measured.wind, Some(west));
        measured.on_message(&heartbeat(MavModeFlag::empty()));
        assert_eq!(measured.wind, None);
    }

    #[test]
    fn the_accuracy_of_the_receiver_is_what_it_reports_of_itself() {
        let mut measured = Measurements::default();
        let mut of = |fix_type: u8, h_acc: u32, eph: u16| {
            let fix_type = match fix_type {
                6 => GpsFixType::GPS_FIX_TYPE_RTK_FIXED,
                3 => GpsFixType::GPS_FIX_TYPE_3D_FIX,
                _ => GpsFixType::GPS_FIX_TYPE_NO_FIX,
            };
            let m = GPS_RAW_INT_DATA { fix_type, h_acc, eph, ..GPS_RAW_INT_DATA::DEFAULT };
            measured.on_message(&MavMessage::GPS_RAW_INT(m));
            measured.gnss.unwrap().error_m()
        };
        let is = |found: Option<f64>, expected_m: f64| found.is_some_and(|m| (m - expected_m).abs() < 1e-3);
        assert!(is(of(3, 4_000, 121), 2.0));
        assert!(is(of(6, 20, 121), 0.014), "with corrections no error is common");
        assert!(is(of(3, 0, 300), 1.23), "3.5.7 reports the dilution alone");
        for (fix_type, h_acc, eph) in [(3, 0, u16::MAX), (3, u32::MAX, 9_999), (3, 0, 0), (1, 900, 100)] {
            assert_eq!(of(fix_type, h_acc, eph), None, "not known is not accurate: {fix_type} {h_acc} {eph}");
        }
    }

    #[test]
    fn the_filter_is_known_where_its_report_is_a_number() {
        let mut measured = Measurements::default();
        let report = |pos_horiz_variance| {
            MavMessage::EKF_STATUS_REPORT(EKF_STATUS_REPORT_DATA {
                pos_horiz_variance,
                ..EKF_STATUS_REPORT_DATA::DEFAULT
            })
        };
        measured.on_message(&report(0.5));
        assert_eq!(measured.filter.map(|filter| filter.position), Some(0.5));
        measured.on_message(&report(f32::NAN));
        assert_eq!(measured.filter, None);
    }

    #[test]
    fn a_battery_that_is_not_measured_is_none() {
        let mut measured = Measurements::default();
        for not_measured in [u16::MAX, 0] {
            measured.on_message(&sys_status(12_300));
            assert!(measured.battery.is_some());
            // As `BATT_MONITOR` 0 reports it.
            measured.on_message(&sys_status(not_measured));
            assert_eq!(measured, Measurements::default());
        }
    }

    fn pack(id: u8, mv: u16, battery_remaining: i8, charge_state: MavBatteryChargeState) -> MavMessage {
        let mut m =
            BATTERY_STATUS_DATA { id, battery_remaining, charge_state, ..BATTERY_STATUS_DATA::DEFAULT };
        m.voltages = [u16::MAX; 10];
        m.voltages[0] = mv;
        MavMessage::BATTERY_STATUS(m)
    }

    const OK: MavBatteryChargeState = MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_OK;
    const CRITICAL: MavBatteryChargeState = MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_CRITICAL;
    const UNDEFINED: MavBatteryChargeState = MavBatteryChargeState::MAV_BATTERY_CHARGE_STATE_UNDEFINED;

    #[test]
    fn the_worst_of_several_batteries_counts_in_whatever_order_they_come() {
        let mut measured = Measurements::default();
        measured.on_message(&MavMessage::SYS_STATUS(SYS_STATUS_DATA {
            voltage_battery: 16_800,
            battery_remaining: 99,
            ..SYS_STATUS_DATA::DEFAULT
        }));
        let worst = |measured: &Measurements, ignored| measured.battery.as_ref().unwrap().worst(ignored);
        let first = worst(&measured, 0).unwrap();
        assert_eq!((first.number, first.remaining_percent), (1, Some(99)));
        for message in [pack(2, 15_000, 60, OK), pack(0, 16_800, 99, OK), pack(1, 9_900, 3, CRITICAL)] {
            measured.on_message(&message);
        }
        let found = worst(&measured, 0).unwrap();
        assert_eq!((found.number, found.remaining_percent, found.state), (2, Some(3), ChargeState::Critical));
        assert!((found.voltage_v.unwrap() - 9.9).abs() < 1e-3);
        // Of a battery that is not judged nothing counts.
        let third = worst(&measured, 0b10).unwrap();
        assert_eq!((third.number, third.remaining_percent, third.state), (3, Some(60), ChargeState::Good));
        let ids: Vec<u8, 16> = measured.battery.as_ref().unwrap().packs.iter().map(|pack| pack.id).collect();
        assert_eq!(&ids[..], [0, 1, 2]);
        // One without a current has no charge: what is known of the others counts.
        measured.on_message(&pack(1, 15_900, -1, UNDEFINED));
        let found = worst(&measured, 0).unwrap();
        assert_eq!((found.number, found.remaining_percent, found.state), (3, Some(60), ChargeState::Good));
    }

    #[test]
    fn a_battery_that_is_no_longer_reported_is_named() {
        let mut measured = Measurements::default();
        let second = |measured: &mut Measurements, with_third: bool| {
            measured.on_message(&sys_status(16_000));
            measured.on_message(&pack(0, 16_000, 80, OK));
            if with_third {
                measured.on_message(&pack(2, 16_000, 80, OK));
            }
            measured.battery.as_ref().unwrap().silent()
        };
        for _ in 0..10 {
            assert_eq!(second(&mut measured, true), None);
        }
        let silent = (0..40).find_map(|s| second(&mut measured, false).map(|number| (s, number)));
        assert_eq!(silent, Some((16, 3)));
    }

    #[test]
    fn the_state_of_a_battery_that_is_no_longer_reported_does_not_stay() {
        let mut measured = Measurements::default();
        measured.on_message(&sys_status(16_000));
        measured.on_message(&pack(1, 16_000, 80, CRITICAL));
        let state = |measured: &Measurements| measured.battery.as_ref().unwrap().worst(0).unwrap().state;
        assert_eq!(state(&measured), ChargeState::Critical);
        for _ in 0..20 {
            measured.on_message(&sys_status(16_000));
        }
        assert_eq!(state(&measured), ChargeState::Unknown);
    }

    #[test]
    fn a_second_battery_is_known_where_the_first_is_not_measured() {
        let mut measured = Measurements::default();
        measured.on_message(&pack(1, 15_200, 40, OK));
        measured.on_message(&sys_status(0));
        let found = measured.battery.as_ref().unwrap().worst(0).unwrap();
        assert_eq!((found.number, found.remaining_percent), (2, Some(40)));
        assert_eq!(measured.battery.as_ref().unwrap().worst(0b10), None);
    }
}
