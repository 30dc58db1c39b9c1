//! MAVLink mission items as the two formats of ground stations carry them: a command, a frame and seven
//! parameters become an [`Item`], or a problem at one of them.
//!
//! Numbers and meanings: MAVLink common message set, MAV_CMD and MAV_FRAME
//! (<https://mavlink.io/en/messages/common.html>), and what ArduCopter does with them
//! (<https://ardupilot.org/copter/docs/mission-command-list.html>). ArduCopter flies with its own
//! acceptance radius and yaw behaviour, so those parameters of a waypoint are not flown: [`Unused`] counts
//! them, and the rest of what an item states without effect, for notes.

use wingbeat_geo::{Position, PositionError};

use crate::{
    Altitude, Datum, Item, LatLon, Limits, Location, Note, Problem, error::shown, limits::distance_m,
};

pub(crate) const WAYPOINT: u32 = 16;
pub(crate) const LOITER_TIME: u32 = 19;
pub(crate) const RETURN_TO_LAUNCH: u32 = 20;
pub(crate) const LAND: u32 = 21;
pub(crate) const TAKE_OFF: u32 = 22;
pub(crate) const DELAY: u32 = 93;
pub(crate) const YAW: u32 = 115;
pub(crate) const CHANGE_SPEED: u32 = 178;

/// MAV_FRAME_GLOBAL: altitude above sea level.
pub(crate) const FRAME_SEA_LEVEL: u32 = 0;
/// MAV_FRAME_GLOBAL_RELATIVE_ALT: altitude above home.
pub(crate) const FRAME_HOME: u32 = 3;

/// The longest hold: ArduPilot stores it in 16 bits.
const HOLD_MAX_S: f64 = 65_535.0;

/// A mission item as a file states it. Every parameter is a finite number, or absent (null in a plan).
pub(crate) struct Raw {
    pub(crate) command: u32,
    pub(crate) frame: u32,
    pub(crate) params: [Option<f64>; 7],
    /// Continue with the next item without a command.
    pub(crate) autocontinue: bool,
}

/// What a mission item is.
pub(crate) enum Parsed {
    /// An item of the mission.
    Item(Item),
    /// A wait where the aircraft is, seconds.
    Delay(f64),
    /// A wait at the position of the aircraft, seconds, at an altitude that must be that of the waypoint before.
    DelayAt(f64, Altitude),
    /// A command that the operator leaves out.
    LeftOut,
    /// A camera, gimbal or servo command that the operator leaves out.
    PayloadLeftOut,
}

/// Which part of a mission item is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Command,
    Frame,
    /// A parameter, from 0.
    Param(usize),
}

/// How a format writes a yaw that its author did not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoYaw {
    /// As 0, as every other parameter: the format has nothing else.
    Zero,
    /// As null: 0 is north.
    Null,
}

/// Counts what items state and an aircraft does not fly.
pub(crate) struct Unused {
    no_yaw: NoYaw,
    parameters: usize,
    stops: usize,
    take_off: Option<LatLon>,
}

impl Unused {
    pub(crate) fn new(no_yaw: NoYaw) -> Self {
        Self { no_yaw, parameters: 0, stops: 0, take_off: None }
    }

    /// 0 and null mean that the author left a parameter alone: both are what ground stations write there. A yaw is
    /// the exception, see [`NoYaw`].
    pub(crate) fn count(&mut self, raw: &Raw) {
        let stated = |index: usize| raw.params[index].is_some_and(|value| value != 0.0);
        let yaw = match self.no_yaw {
            NoYaw::Zero => stated(3),
            NoYaw::Null => raw.params[3].is_some(),
        };
        let unused = match raw.command {
            WAYPOINT => stated(1) || stated(2) || yaw,
            // The first is a fixed wing's pitch, which ground stations write for every aircraft.
            TAKE_OFF => stated(1) || stated(2) || yaw,
            // The last is the altitude of the ground.
            LAND => (0..3).any(stated) || yaw || stated(6),
            // A throttle of -1 is no throttle.
            CHANGE_SPEED => (stated(2) && raw.params[2] != Some(-1.0)) || (3..7).any(stated),
            // ArduCopter's own radius and direction, and leaves where it will.
            LOITER_TIME => (1..4).any(stated),
            // Times of day are refused.
            DELAY => (4..7).any(stated),
            // Its rate and its direction.
            YAW => stated(1) || stated(2) || (4..7).any(stated),
            // MAVLink gives it no parameters.
            RETURN_TO_LAUNCH => (0..7).any(stated),
            _ => false,
        };
        self.parameters += usize::from(unused);
        self.stops += usize::from(!raw.autocontinue);
        if raw.command == TAKE_OFF {
            // What is no position was refused when the item was made.
            self.take_off = raw.position().ok().flatten();
        }
    }

    /// What was counted, for an aircraft that starts at `home`, where it is known.
    pub(crate) fn notes(&self, home: Option<Position>) -> impl Iterator<Item = Note> {
        let parameters = (self.parameters > 0).then_some(Note::ParametersNotUsed { items: self.parameters });
        let stops = (self.stops > 0).then_some(Note::StopsNotFlown { items: self.stops });
        let from_home_m = |position| home.map(|home| distance_m(home.into(), position));
        let take_off = self.take_off.map(from_home_m).and_then(|distance_m| match distance_m {
            Some(distance_m) if distance_m <= AT_HOME_M => None,
            distance_m => Some(Note::TakeOffElsewhere { from_home_m: distance_m }),
        });
        parameters.into_iter().chain(stops).chain(take_off)
    }
}

/// A take-off that stands so near to home is a take-off at home: ground stations write home there, to the accuracy of
/// a receiver.
const AT_HOME_M: f64 = 10.0;

impl Raw {
    /// Returns what the item is.
    ///
    /// # Errors
    /// The part of it that cannot be flown.
    pub(crate) fn read(&self, limits: &Limits) -> Result<Parsed, (Part, Problem)> {
        if limits.leave_out.contains(&self.command) {
            return Ok(Parsed::LeftOut);
        }
        let item = match self.command {
            TAKE_OFF => {
                // Not used, as ArduCopter does not; but what stands there must be a position.
                self.position()?;
                Item::TakeOff { altitude: self.altitude()? }
            }
            WAYPOINT => {
                let altitude = self.altitude()?;
                let Some(position) = self.position()? else {
                    return Err((
                        Part::Param(4),
                        Problem::Value {
                            what: "position of the waypoint",
                            found: "latitude 0, longitude 0 (for ArduCopter: wherever it is)".into(),
                            expected: "coordinates",
                        },
                    ));
                };
                Item::Waypoint { position, altitude, hold_s: self.hold_s()? }
            }
            LAND => {
                // The altitude of a landing is where the ground is thought to be: ArduCopter flies there level and
                // descends until it stands.
                self.datum()?;
                Item::Land { position: self.position()? }
            }
            RETURN_TO_LAUNCH => Item::ReturnToLaunch,
            CHANGE_SPEED => self.change_speed(limits)?,
            LOITER_TIME => match self.position()? {
                Some(position) => {
                    Item::Waypoint { position, altitude: self.altitude()?, hold_s: self.hold_s()? }
                }
                // ArduCopter takes an altitude of 0 for that of the aircraft.
                None if self.params[6].is_none_or(|altitude_m| altitude_m == 0.0) => {
                    return Ok(Parsed::Delay(self.hold_s()?));
                }
                None => return Ok(Parsed::DelayAt(self.hold_s()?, self.altitude()?)),
            },
            DELAY => return self.delay(),
            YAW => self.yaw()?,
            number if limits.leave_out_payload && is_payload(number) => return Ok(Parsed::PayloadLeftOut),
            number => {
                let (name, is_payload) = (command_name(number), is_payload(number));
                return Err((Part::Command, Problem::Command { number, name, is_payload }));
            }
        };
        Ok(Parsed::Item(item))
    }

    fn datum(&self) -> Result<Datum, (Part, Problem)> {
        match self.frame {
            // The _INT frames differ only in how a message carries the position.
            0 | 5 => Ok(Datum::SeaLevel),
            3 | 6 => Ok(Datum::Home),
            number => Err((Part::Frame, Problem::Frame { number, name: frame_name(number) })),
        }
    }

    fn altitude(&self) -> Result<Altitude, (Part, Problem)> {
        let datum = self.datum()?;
        let altitude_m = self.required(6, "altitude")?;
        let value_mm = Position::from_degrees(0.0, 0.0, altitude_m).map_err(coordinate)?.altitude_mm;
        Ok(Altitude { value_mm, datum })
    }

    /// `None` for 0, 0, which ArduPilot takes for the aircraft's own position.
    fn position(&self) -> Result<Option<LatLon>, (Part, Problem)> {
        let (latitude_deg, longitude_deg) = match (self.params[4], self.params[5]) {
            (None, None) => return Ok(None),
            _ => (self.required(4, "latitude")?, self.required(5, "longitude")?),
        };
        let position =
            LatLon::from(Position::from_degrees(latitude_deg, longitude_deg, 0.0).map_err(coordinate)?);
        Ok(Some(position).filter(|position| (position.latitude_e7, position.longitude_e7) != (0, 0)))
    }

    fn hold_s(&self) -> Result<f64, (Part, Problem)> {
        hold_s(self.params[0].unwrap_or(0.0)).map_err(|problem| (Part::Param(0), problem))
    }

    /// A delay of so many seconds; ArduCopter also knows one until a time of day.
    fn delay(&self) -> Result<Parsed, (Part, Problem)> {
        if let Some(index) = (1..4).find(|&index| self.params[index].is_some_and(|value| value > 0.0)) {
            let found = shown(&format!("a time of day ({})", self.params[index].unwrap_or_default()));
            let expected = "a delay in seconds (parameter 1)";
            return Err((Part::Param(index), Problem::Value { what: "delay", found, expected }));
        }
        self.hold_s().map(Parsed::Delay)
    }

    fn yaw(&self) -> Result<Item, (Part, Problem)> {
        if self.params[3].is_some_and(|relative| relative != 0.0) {
            let found = "a turn relative to the present yaw".into();
            let expected = "a yaw from north (parameter 4: 0)";
            return Err((Part::Param(3), Problem::Value { what: "yaw", found, expected }));
        }
        let yaw_deg = yaw_deg(self.required(0, "yaw")?).map_err(|problem| (Part::Param(0), problem))?;
        Ok(Item::Yaw { yaw_deg })
    }

    fn change_speed(&self, limits: &Limits) -> Result<Item, (Part, Problem)> {
        let kind = self.params[0].unwrap_or(0.0);
        // Airspeed or ground speed: a multicopter has the latter only and takes both as that.
        if kind != 0.0 && kind != 1.0 {
            let found = shown(&kind.to_string());
            let expected = "0 or 1 (horizontal speed)";
            return Err((Part::Param(0), Problem::Value { what: "kind of speed", found, expected }));
        }
        let speed_m_s = self.required(1, "speed")?;
        let speed_m_s = limits.speed(speed_m_s).map_err(|problem| (Part::Param(1), problem))?;
        Ok(Item::ChangeSpeed { speed_m_s })
    }

    fn required(&self, index: usize, what: &'static str) -> Result<f64, (Part, Problem)> {
        let missing = Problem::Value { what, found: "nothing".into(), expected: "a number" };
        self.params[index].ok_or((Part::Param(index), missing))
    }
}

/// The items of a mission while they are read, and the commands that were left out.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) items: Vec<(Item, Location)>,
    commands: usize,
    payload: usize,
}

impl Collected {
    /// Takes the next item; a delay becomes part of the hold at the waypoint before it.
    pub(crate) fn take(&mut self, parsed: Parsed, at: Location) -> Result<(), Problem> {
        match parsed {
            Parsed::Item(item) => self.items.push((item, at)),
            Parsed::LeftOut => self.commands += 1,
            Parsed::PayloadLeftOut => self.payload += 1,
            Parsed::DelayAt(delay_s, at_altitude) => {
                if let Some((Item::Waypoint { altitude, .. }, _)) = self.items.last()
                    && *altitude != at_altitude
                {
                    let metres = |altitude: &Altitude| f64::from(altitude.value_mm) * 1e-3;
                    let found = format!("{} m after {} m", metres(&at_altitude), metres(altitude)).into();
                    let expected = "the altitude of the waypoint before, or a position of its own";
                    return Err(Problem::Value { what: "altitude of the hold", found, expected });
                }
                return self.take(Parsed::Delay(delay_s), at);
            }
            Parsed::Delay(delay_s) => match self.items.last_mut() {
                Some((Item::Waypoint { hold_s: held_s, .. }, _)) => *held_s = hold_s(*held_s + delay_s)?,
                Some(_) | None => {
                    let expected = "it right after the waypoint at which the aircraft waits";
                    return Err(Problem::Order { found: "a delay after no waypoint", expected });
                }
            },
        }
        Ok(())
    }
    /// The number of commands that were read.
    pub(crate) fn count(&self) -> usize {
        self.items.len() + self.commands + self.payload
    }
    /// Notes of what was left out.
    pub(crate) fn notes(&self) -> impl Iterator<Item = Note> + use<> {
        let payload = (self.payload > 0).then_some(Note::PayloadLeftOut { commands: self.payload });
        let commands = (self.commands > 0).then_some(Note::CommandsLeftOut { commands: self.commands });
        payload.into_iter().chain(commands)
    }
}

/// The yaw, if it is one.
pub(crate) fn yaw_deg(yaw_deg: f64) -> Result<f64, Problem> {
    if (0.0..360.0).contains(&yaw_deg) {
        return Ok(yaw_deg.abs());
    }
    let found = format!("{yaw_deg} degrees").into();
    Err(Problem::Value { what: "yaw", found, expected: "0 to less than 360 degrees" })
}

/// The hold, if it can be flown.
pub(crate) fn hold_s(hold_s: f64) -> Result<f64, Problem> {
    if (0.0..=HOLD_MAX_S).contains(&hold_s) {
        // Not -0, which would not be the same after writing it.
        return Ok(hold_s.abs());
    }
    let found = format!("{hold_s} s").into();
    Err(Problem::Value { what: "hold time", found, expected: "0 to 65535 s" })
}

/// A coordinate off the earth, at the parameter that holds it.
fn coordinate(error: PositionError) -> (Part, Problem) {
    let (index, what, value, expected) = match error {
        PositionError::Latitude(value) => (4, "latitude", value, "-90 to 90 degrees"),
        PositionError::Longitude(value) => (5, "longitude", value, "-180 to 180 degrees"),
        PositionError::Altitude(value) => (6, "altitude", value, "-1000 to 100000 m"),
    };
    (Part::Param(index), Problem::Value { what, found: value.to_string().into(), expected })
}

/// The same, where there are no parameters to point at.
pub(crate) fn position_problem(error: PositionError) -> Problem {
    coordinate(error).1
}

/// Cameras, gimbals, servos, relays and grippers: commands that do not move the aircraft.
fn is_payload(command: u32) -> bool {
    matches!(command, 80 | 181..=184 | 195 | 197 | 201 | 202 | 203 | 204 | 205 | 206 | 211 | 214 | 530..=534 | 1000 | 1001 | 2000..=2003 | 2500 | 2501)
}

/// The MAVLink name of a command that mission files are known to hold.
fn command_name(command: u32) -> &'static str {
    match command {
        16 => "MAV_CMD_NAV_WAYPOINT",
        17 => "MAV_CMD_NAV_LOITER_UNLIM",
        18 => "MAV_CMD_NAV_LOITER_TURNS",
        19 => "MAV_CMD_NAV_LOITER_TIME",
        20 => "MAV_CMD_NAV_RETURN_TO_LAUNCH",
        21 => "MAV_CMD_NAV_LAND",
        22 => "MAV_CMD_NAV_TAKEOFF",
        31 => "MAV_CMD_NAV_LOITER_TO_ALT",
        80 => "MAV_CMD_NAV_ROI",
        82 => "MAV_CMD_NAV_SPLINE_WAYPOINT",
        84 => "MAV_CMD_NAV_VTOL_TAKEOFF",
        85 => "MAV_CMD_NAV_VTOL_LAND",
        92 => "MAV_CMD_NAV_GUIDED_ENABLE",
        93 => "MAV_CMD_NAV_DELAY",
        94 => "MAV_CMD_NAV_PAYLOAD_PLACE",
        112 => "MAV_CMD_CONDITION_DELAY",
        113 => "MAV_CMD_CONDITION_CHANGE_ALT",
        114 => "MAV_CMD_CONDITION_DISTANCE",
        115 => "MAV_CMD_CONDITION_YAW",
        176 => "MAV_CMD_DO_SET_MODE",
        177 => "MAV_CMD_DO_JUMP",
        178 => "MAV_CMD_DO_CHANGE_SPEED",
        179 => "MAV_CMD_DO_SET_HOME",
        181 => "MAV_CMD_DO_SET_RELAY",
        182 => "MAV_CMD_DO_REPEAT_RELAY",
        183 => "MAV_CMD_DO_SET_SERVO",
        184 => "MAV_CMD_DO_REPEAT_SERVO",
        189 => "MAV_CMD_DO_LAND_START",
        195 => "MAV_CMD_DO_SET_ROI_LOCATION",
        197 => "MAV_CMD_DO_SET_ROI_NONE",
        201 => "MAV_CMD_DO_SET_ROI",
        202 => "MAV_CMD_DO_DIGICAM_CONFIGURE",
        203 => "MAV_CMD_DO_DIGICAM_CONTROL",
        204 => "MAV_CMD_DO_MOUNT_CONFIGURE",
        205 => "MAV_CMD_DO_MOUNT_CONTROL",
        206 => "MAV_CMD_DO_SET_CAM_TRIGG_DIST",
        207 => "MAV_CMD_DO_FENCE_ENABLE",
        208 => "MAV_CMD_DO_PARACHUTE",
        211 => "MAV_CMD_DO_GRIPPER",
        212 => "MAV_CMD_DO_AUTOTUNE_ENABLE",
        214 => "MAV_CMD_DO_SET_CAM_TRIGG_INTERVAL",
        222 => "MAV_CMD_DO_GUIDED_LIMITS",
        223 => "MAV_CMD_DO_ENGINE_CONTROL",
        530 => "MAV_CMD_SET_CAMERA_MODE",
        531 => "MAV_CMD_SET_CAMERA_ZOOM",
        532 => "MAV_CMD_SET_CAMERA_FOCUS",
        534 => "MAV_CMD_SET_CAMERA_SOURCE",
        600 => "MAV_CMD_JUMP_TAG",
        601 => "MAV_CMD_DO_JUMP_TAG",
        1000 => "MAV_CMD_DO_GIMBAL_MANAGER_PITCHYAW",
        1001 => "MAV_CMD_DO_GIMBAL_MANAGER_CONFIGURE",
        2000 => "MAV_CMD_IMAGE_START_CAPTURE",
        2001 => "MAV_CMD_IMAGE_STOP_CAPTURE",
        2003 => "MAV_CMD_DO_TRIGGER_CONTROL",
        2500 => "MAV_CMD_VIDEO_START_CAPTURE",
        2501 => "MAV_CMD_VIDEO_STOP_CAPTURE",
        _ => "no name known to Wingbeat",
    }
}

/// The MAVLink name of a frame that cannot be flown.
fn frame_name(frame: u32) -> &'static str {
    match frame {
        1 => "MAV_FRAME_LOCAL_NED",
        2 => "MAV_FRAME_MISSION",
        4 => "MAV_FRAME_LOCAL_ENU",
        7 => "MAV_FRAME_LOCAL_OFFSET_NED",
        8 => "MAV_FRAME_BODY_NED",
        9 => "MAV_FRAME_BODY_OFFSET_NED",
        10 => "MAV_FRAME_GLOBAL_TERRAIN_ALT",
        11 => "MAV_FRAME_GLOBAL_TERRAIN_ALT_INT",
        12 => "MAV_FRAME_BODY_FRD",
        20 => "MAV_FRAME_LOCAL_FRD",
        21 => "MAV_FRAME_LOCAL_FLU",
        _ => "no name known to Wingbeat",
    }
}
