//! The registered formations: the enumeration, its names, and its numbers in a plan.

use core::fmt;

use super::shape::{Geometry, LayoutNames, LayoutParameter};
use super::{FormationError, Layout};

/// Makes [`Layout`] of the registered formations: `Variant { parameter: type = default } => file, "appearance";`.
macro_rules! layouts {
    ($($Layout:ident $({ $parameter:ident: $type:ty = $default:literal })? => $file:ident, $appearance:literal;)+) => {
        /// The shape of a formation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum Layout {
            $(
                #[doc = concat!($appearance, ".")]
                $Layout $({
                    #[doc = "The number after the name."]
                    $parameter: $type,
                })?,
            )+
        }

        impl Layout {
            /// One of each, with the default of its parameter, in the order of their numbers.
            pub const ALL: [Self; [$($appearance),+].len()] =
                [$(Self::$Layout $({ $parameter: $default })?),+];

            /// Its shape, in one line without a full stop.
            pub const fn appearance(self) -> &'static str {
                match self {
                    $(Self::$Layout $({ $parameter: _ })? => $appearance,)+
                }
            }

            pub(in crate::formation) const fn shape(self) -> &'static Shape {
                match self {
                    $(Self::$Layout $({ $parameter: _ })? => &$file::SHAPE,)+
                }
            }

            /// Zero where the layout has none.
            pub(in crate::formation) const fn parameter(self) -> u32 {
                match self {
                    $(Self::$Layout $({ $parameter })? => 0 $(+ $parameter as u32)?,)+
                }
            }

            /// The same layout with another parameter, within the limits of [`LayoutParameter`].
            const fn with_parameter(self, parameter: u32) -> Self {
                match self {
                    $(Self::$Layout $({ $parameter: _ })? => Self::$Layout $({ $parameter: parameter as $type })?,)+
                }
            }
        }
    };
}

impl Layout {
    /// The name that configuration files and flags use, without its parameter.
    pub const fn name(self) -> &'static str {
        self.shape().name
    }
    /// The names of all layouts with their parameters, for messages and help texts.
    pub fn names() -> impl fmt::Display {
        LayoutNames
    }
    /// The number of the layout in a plan.
    pub const fn number(self) -> u8 {
        let shape = self.shape();
        match shape.parameter {
            Some(LayoutParameter { is_in_number: true, .. }) => {
                // Limits that overflow do not compile: see below.
                shape.number.saturating_add(self.parameter() as u8)
            }
            Some(_) | None => shape.number,
        }
    }
    /// The layout of a number in a plan. Where the plan carries the offsets the parameter is not known: it is zero.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find_map(|layout| match &layout.shape().parameter {
            Some(limits) if limits.is_in_number => {
                let parameter = u32::from(number.checked_sub(layout.shape().number)?);
                let is_within = (limits.least..=limits.most).contains(&parameter);
                is_within.then(|| layout.with_parameter(parameter))
            }
            Some(_) | None => (number == layout.shape().number).then(|| layout.with_parameter(0)),
        })
    }
    /// The slot in the middle of `count`, whose aircraft leads the flight.
    pub fn center_slot(self, count: usize) -> usize {
        (self.shape().center_slot)(count)
    }
    /// Whether the offsets cannot be computed from the layout, the count and the distance: a plan carries them.
    pub const fn is_listed(self) -> bool {
        matches!(self.shape().geometry, Geometry::Drawn(_) | Geometry::Listed)
    }
    /// Checks the parameter against its limits.
    pub(super) fn check(self) -> Result<(), FormationError> {
        let (shape, found) = (self.shape(), self.parameter());
        match shape.parameter {
            Some(LayoutParameter { name, least, most, .. }) if found < least || found > most => {
                Err(FormationError::Parameter { layout: shape.name, name, found, least, most })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl core::str::FromStr for Layout {
    type Err = FormationError;
    fn from_str(text: &str) -> Result<Self, FormationError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let default = Self::ALL.into_iter().find(|layout| layout.name() == name);
        let default = default.ok_or(FormationError::UnknownLayout)?;
        let Some(parameter) = parameter else { return Ok(default) };
        let Some(LayoutParameter { name, least, most, .. }) = default.shape().parameter else {
            return Err(FormationError::UnknownLayout);
        };
        let found = parameter.parse().map_err(|_| FormationError::UnknownLayout)?;
        if found < least || found > most {
            return Err(FormationError::Parameter { layout: default.name(), name, found, least, most });
        }
        Ok(default.with_parameter(found))
    }
}

/// As configuration files and flags write it, with its parameter.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.shape().parameter {
            Some(_) => write!(f, ":{}", self.parameter()),
            None => Ok(()),
        }
    }
}

/// No number of a plan means two layouts.
const _: () = {
    /// The first and the last number of a layout.
    const fn numbers(layout: Layout) -> (u32, u32) {
        let shape = layout.shape();
        let number = shape.number as u32;
        match shape.parameter {
            Some(LayoutParameter { least, most, is_in_number: true, .. }) => (number + least, number + most),
            Some(_) | None => (number, number),
        }
    }
    let mut i = 0;
    while i < Layout::ALL.len() {
        let (first, last) = numbers(Layout::ALL[i]);
        assert!(last <= u8::MAX as u32, "a plan has one byte for the number of its layout");
        let mut j = 0;
        while j < i {
            let other = numbers(Layout::ALL[j]);
            assert!(last < other.0 || first > other.1, "two formations have the same number");
            j += 1;
        }
        i += 1;
    }
};
