//! ArduCopter: its flight modes, their numbers, and its quirks.

/// ArduCopter's flight modes that Wingbeat knows, with their numbers in `HEARTBEAT.custom_mode`
/// (<https://ardupilot.org/copter/docs/parameters.html#fltmode1>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    PosHold = 16,
    Brake = 17,
    SmartRtl = 21,
}

impl Mode {
    /// Every mode, by number.
    pub const ALL: [Self; 10] = [
        Self::Stabilize,
        Self::AltHold,
        Self::Auto,
        Self::Guided,
        Self::Loiter,
        Self::Rtl,
        Self::Land,
        Self::PosHold,
        Self::Brake,
        Self::SmartRtl,
    ];
    /// The mode of a number, if Wingbeat knows it.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&m| m as u32 == number)
    }
    /// The number in `HEARTBEAT.custom_mode`.
    pub const fn number(self) -> u32 {
        self as u32
    }
    /// ArduCopter's name of the mode.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stabilize => "STABILIZE",
            Self::AltHold => "ALT_HOLD",
            Self::Auto => "AUTO",
            Self::Guided => "GUIDED",
            Self::Loiter => "LOITER",
            Self::Rtl => "RTL",
            Self::Land => "LAND",
            Self::PosHold => "POSHOLD",
            Self::Brake => "BRAKE",
            Self::SmartRtl => "SMART_RTL",
        }
    }
}
