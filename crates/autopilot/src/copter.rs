//! ArduCopter: its flight modes, their numbers, and its quirks.

use strum::{IntoStaticStr, VariantArray};

/// ArduCopter's flight modes that Wingbeat uses, with their numbers in `HEARTBEAT.custom_mode`
/// (<https://ardupilot.org/copter/docs/parameters.html#fltmode1>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Mode {
    Stabilize = 0,
    AltHold = 2,
    Auto = 3,
    Guided = 4,
    Loiter = 5,
    Rtl = 6,
    Land = 9,
    #[strum(serialize = "POSHOLD")]
    PosHold = 16,
    Brake = 17,
    SmartRtl = 21,
}

impl Mode {
    /// The mode of a number, if it is one of these.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|mode| mode.number() == number)
    }
    /// The number in `HEARTBEAT.custom_mode`.
    pub const fn number(self) -> u32 {
        self as u32
    }
    /// ArduCopter's name of the mode.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_arducopters_number_and_name() {
        let found = Mode::VARIANTS.iter().map(|mode| (mode.number(), mode.name()));
        let expected = [
            (0, "STABILIZE"),
            (2, "ALT_HOLD"),
            (3, "AUTO"),
            (4, "GUIDED"),
            (5, "LOITER"),
            (6, "RTL"),
            (9, "LAND"),
            (16, "POSHOLD"),
            (17, "BRAKE"),
            (21, "SMART_RTL"),
        ];
        assert!(found.eq(expected), "{:?}", Mode::VARIANTS);
        assert!(expected.iter().all(|&(number, _)| Mode::from_number(number).is_some()));
        assert_eq!(Mode::from_number(1), None);
    }
}
