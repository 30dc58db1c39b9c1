//! Parameters: read one, write one with proof, set one by its name, read them all, and watch a few
//! (<https://mavlink.io/en/services/parameter.html>).
//!
//! ArduPilot carries every value as a 32-bit float, whatever its type, and answers a write with the value
//! that it then holds: another value is a refusal. What it does not have, it leaves unanswered (up to
//! 4.6; later versions answer PARAM_ERROR), so a parameter is absent when no answer came after every
//! try. Versions rename parameters: one that is known by two [`Names`] is requested under both alternately.

mod list;
mod read;
mod set;
mod watch;
mod write;

pub use list::{LISTED_MAX, List, Listed};
pub use read::Read;
pub use set::{Change, Set};
pub use watch::{Finding, WATCHED, WATCHED_MAX, Watch, Watched};
pub use write::Write;

use core::fmt;

use crate::codec::{BufferFull, text};
use crate::copter::RENAMED;
use crate::dialect::{MavMessage, MavParamError, MavParamType, PARAM_REQUEST_READ_DATA, PARAM_VALUE_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};

/// Characters in a name (<https://mavlink.io/en/messages/common.html#PARAM_VALUE>).
pub const NAME_LEN_MAX: usize = 16;

/// A parameter's name: 1 to 16 characters of printable ASCII.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name([u8; NAME_LEN_MAX]);

impl Name {
    /// A name; `None` for what cannot be one.
    pub fn new(name: &str) -> Option<Self> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() > NAME_LEN_MAX || !bytes.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut field = [0; NAME_LEN_MAX];
        field[..bytes.len()].copy_from_slice(bytes);
        Some(Self(field))
    }
    /// As text.
    pub fn as_str(&self) -> &str {
        text(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A parameter under the names that versions give it: this one, then the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The name that most aircraft know it by.
    pub usual: &'static str,
    /// Its other name, if it has one.
    pub other: Option<&'static str>,
    /// How many of the usual one's unit one of the other's is. Values are in the usual unit.
    unit: u16,
}

impl Names {
    /// The aircraft's MAVLink system id.
    pub const SYSTEM_ID: Self = Self::of("SYSID_THISMAV");
    /// The system id of the ground station that ArduPilot obeys as its pilot's.
    pub const GROUND_STATION_ID: Self = Self::of("SYSID_MYGCS");

    /// A parameter with one name.
    pub const fn one(usual: &'static str) -> Self {
        Self { usual, other: None, unit: 1 }
    }
    /// A parameter with the names that versions of ArduCopter give it ([`RENAMED`]).
    pub const fn of(usual: &'static str) -> Self {
        let mut row = 0;
        while row < RENAMED.len() {
            if is_same(RENAMED[row].usual, usual) {
                return Self { usual, other: Some(RENAMED[row].other), unit: RENAMED[row].unit };
            }
            row += 1;
        }
        Self::one(usual)
    }
    /// A value that came under `name`, in the usual unit.
    fn in_usual_unit(&self, name: Name, value: Value) -> Value {
        match value {
            Value::Real(real) if Some(name.as_str()) == self.other => {
                Value::Real(real * f32::from(self.unit))
            }
            Value::Real(_) | Value::Integer(_) => value,
        }
    }
    /// A value in the usual unit as it is written under `name`.
    fn in_unit_of(&self, name: &str, value: Value) -> Value {
        match value {
            Value::Real(real) if Some(name) == self.other => Value::Real(real / f32::from(self.unit)),
            Value::Real(_) | Value::Integer(_) => value,
        }
    }
    /// Whether this is one of its names.
    pub fn has(&self, name: &str) -> bool {
        name == self.usual || Some(name) == self.other
    }
    /// The name for a try: both alternately.
    fn of_try(&self, number: u8) -> &'static str {
        match self.other {
            Some(other) if number % 2 == 1 => other,
            _ => self.usual,
        }
    }
    /// Number of names.
    fn count(&self) -> u8 {
        if self.other.is_some() { 2 } else { 1 }
    }
}

/// Integer or real. Versions widen integers, so their width is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer.
    Integer,
    /// Any number.
    Real,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "a whole number",
            Self::Real => "a real number",
        })
    }
}

/// A value with its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number, up to 32 bits.
    Integer(i64),
    /// Any finite number.
    Real(f32),
}

impl Value {
    /// Its kind.
    pub fn kind(self) -> Kind {
        match self {
            Self::Integer(_) => Kind::Integer,
            Self::Real(_) => Kind::Real,
        }
    }
    /// As a number.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Integer(i) => i as f64,
            Self::Real(r) => f64::from(r),
        }
    }
    /// The whole number, if it is one.
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Self::Integer(i) => Some(i),
            Self::Real(_) => None,
        }
    }
    /// As it is carried. Whole numbers beyond 2^24 lose their last bits: that is ArduPilot's encoding.
    fn on_the_wire(self) -> (f32, MavParamType) {
        match self {
            Self::Integer(i) => (i as f32, MavParamType::MAV_PARAM_TYPE_INT32),
            Self::Real(r) => (r, MavParamType::MAV_PARAM_TYPE_REAL32),
        }
    }
    /// Whether both are carried as the same number.
    fn is_same(self, other: Self) -> bool {
        self.kind() == other.kind() && self.on_the_wire().0 == other.on_the_wire().0
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(i) => write!(f, "{i}"),
            Self::Real(r) => write!(f, "{r}"),
        }
    }
}

/// Why a PARAM_VALUE cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BadValue {
    /// The name is empty or not text.
    #[error("parameter: found a name that is no text, expected 1 to 16 printable characters")]
    Name,
    /// A type that ArduPilot does not have.
    #[error("parameter {name}: found type {found}, expected an integer of up to 32 bits or a 32-bit real")]
    Type {
        /// The parameter.
        name: Name,
        /// Its MAV_PARAM_TYPE.
        found: u8,
    },
    /// Not a finite number, a fraction in an integer, or a number beyond its type.
    #[error("parameter {name}: found {found}, expected a number of its type")]
    Number {
        /// The parameter.
        name: Name,
        /// The value.
        found: f32,
    },
}

impl BadValue {
    /// The parameter, where its name could be read.
    pub fn name(&self) -> Option<Name> {
        match self {
            Self::Name => None,
            Self::Type { name, .. } | Self::Number { name, .. } => Some(*name),
        }
    }
}

/// The name and value of a PARAM_VALUE.
///
/// # Errors
/// Says what of it cannot be read.
#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
pub fn value_of(m: &PARAM_VALUE_DATA) -> Result<(Name, Value), BadValue> {
    let name = Name::new(text(&*m.param_id)).ok_or(BadValue::Name)?;
    let bad = BadValue::Number { name, found: m.param_value };
    let (least, most) = match m.param_type {
        MavParamType::MAV_PARAM_TYPE_REAL32 => {
            return if m.param_value.is_finite() { Ok((name, Value::Real(m.param_value))) } else { Err(bad) };
        }
        MavParamType::MAV_PARAM_TYPE_INT8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        MavParamType::MAV_PARAM_TYPE_UINT8 => (0.0, f64::from(u8::MAX)),
        MavParamType::MAV_PARAM_TYPE_INT16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        MavParamType::MAV_PARAM_TYPE_UINT16 => (0.0, f64::from(u16::MAX)),
        // As a float the greatest value rounds up by one.
        MavParamType::MAV_PARAM_TYPE_INT32 => (f64::from(i32::MIN), f64::from(i32::MAX) + 1.0),
        MavParamType::MAV_PARAM_TYPE_UINT32 => (0.0, f64::from(u32::MAX) + 1.0),
        other => return Err(BadValue::Type { name, found: other as u8 }),
    };
    let number = f64::from(m.param_value);
    if number >= least && number <= most && libm::trunc(number) == number {
        Ok((name, Value::Integer(number as i64)))
    } else {
        Err(bad)
    }
}

/// The answer of a message to a request for the parameter with these names: its value, or why there is none.
#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
fn answer(message: &MavMessage, names: &Names) -> Option<Result<(Name, Value), Refusal>> {
    match message {
        MavMessage::PARAM_VALUE(m) => match value_of(m) {
            Ok((name, value)) => names.has(name.as_str()).then_some(Ok((name, value))),
            Err(bad) => bad.name().filter(|name| names.has(name.as_str())).map(|_| Err(Refusal::Bad(bad))),
        },
        MavMessage::PARAM_ERROR(m) => {
            let name = Name::new(text(&*m.param_id)).filter(|name| names.has(name.as_str()))?;
            Some(Err(Refusal::Error { name, error: m.error }))
        }
        _ => None,
    }
}

/// An answer that is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Refusal {
    Bad(BadValue),
    Error { name: Name, error: MavParamError },
}

fn request(name: &str, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
    transmit.send(&MavMessage::PARAM_REQUEST_READ(PARAM_REQUEST_READ_DATA {
        // By name, not by index.
        param_index: -1,
        target_system: transmit.system_id,
        target_component: AUTOPILOT_COMPONENT_ID,
        param_id: name.into(),
    }))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A PARAM_VALUE as ArduPilot answers one.
    pub(crate) fn value(name: &str, number: f32, kind: MavParamType) -> MavMessage {
        MavMessage::PARAM_VALUE(PARAM_VALUE_DATA {
            param_value: number,
            param_count: 850,
            param_index: u16::MAX,
            param_id: name.into(),
            param_type: kind,
        })
    }
    pub(crate) fn real(name: &str, number: f32) -> MavMessage {
        value(name, number, MavParamType::MAV_PARAM_TYPE_REAL32)
    }
    pub(crate) fn integer(name: &str, number: f32) -> MavMessage {
        value(name, number, MavParamType::MAV_PARAM_TYPE_INT16)
    }
    /// PARAM_ERROR: there is no such parameter.
    pub(crate) fn no_such(name: &str) -> MavMessage {
        MavMessage::PARAM_ERROR(crate::dialect::PARAM_ERROR_DATA {
            param_index: -1,
            target_system: 1,
            target_component: 191,
            param_id: name.into(),
            error: MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(number: f32, kind: MavParamType) -> Result<Value, BadValue> {
        let MavMessage::PARAM_VALUE(m) = testing::value("RTL_ALT", number, kind) else { unreachable!() };
        value_of(&m).map(|(name, value)| {
            assert_eq!(name.as_str(), "RTL_ALT");
            value
        })
    }

    #[test]
    fn a_number_that_is_not_of_its_type_is_refused_with_what_was_found() {
        use MavParamType::*;
        let name = Name::new("RTL_ALT").unwrap();
        assert_eq!(parse(1500.0, MAV_PARAM_TYPE_INT16), Ok(Value::Integer(1500)));
        assert_eq!(parse(1.5, MAV_PARAM_TYPE_REAL32), Ok(Value::Real(1.5)));
        assert_eq!(parse(2_147_483_648.0, MAV_PARAM_TYPE_INT32), Ok(Value::Integer(1 << 31)));
        for (number, kind) in
            [(1.5, MAV_PARAM_TYPE_INT16), (40_000.0, MAV_PARAM_TYPE_INT16), (-1.0, MAV_PARAM_TYPE_UINT8)]
        {
            assert_eq!(parse(number, kind), Err(BadValue::Number { name, found: number }));
        }
        assert!(matches!(parse(f32::NAN, MAV_PARAM_TYPE_REAL32), Err(BadValue::Number { .. })));
        assert!(matches!(parse(f32::INFINITY, MAV_PARAM_TYPE_INT32), Err(BadValue::Number { .. })));
        assert_eq!(parse(1.0, MAV_PARAM_TYPE_REAL64), Err(BadValue::Type { name, found: 10 }));
    }

    #[test]
    fn a_name_is_one_to_sixteen_printable_characters() {
        assert_eq!(Name::new("SIXTEEN_LETTERS_").unwrap().as_str(), "SIXTEEN_LETTERS_");
        for bad in ["", "SEVENTEEN_LETTERS", "TWO WORDS", "Ä", "A\0B"] {
            assert_eq!(Name::new(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_message_is_a_value_or_a_refusal(
            id in prop::array::uniform16(any::<u8>()), number in any::<f32>(), count: u16, index: u16,
        ) {
            let m = PARAM_VALUE_DATA {
                param_value: number,
                param_count: count,
                param_index: index,
                param_id: id.into(),
                param_type: MavParamType::MAV_PARAM_TYPE_INT32,
            };
            if let Ok((name, value)) = value_of(&m) {
                prop_assert!(!name.as_str().is_empty());
                prop_assert_eq!(value.as_f64(), f64::from(number));
            }
        }
    }
}
