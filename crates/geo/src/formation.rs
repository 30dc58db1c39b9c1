//! Flight formations: where slot k lies, relative to the slot that leads (thesis section 4.1.6.1).
//!
//! A slot's offset has x to the right of the heading and y ahead; [`Formation::offset_m`] turns it
//! into east and north with the rotation of thesis equation 6.2. Slots are numbered as the reference
//! implementation numbers them; [`Formation::center_slot`] is the one that flies the mission as planned.

use glam::DVec2;

use crate::AIRCRAFT_MAX;

/// A layout, its number of aircraft and the least distance between two of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formation {
    layout: Layout,
    count: usize,
    distance_m: f64,
}

/// The shape of a formation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A row abreast, at right angles to the heading.
    Linear,
    /// A square grid, row by row, from left to right and from back to front.
    Matrix,
    /// One in the middle, the others on a circle around it.
    Circular,
}

/// Why a formation cannot exist.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FormationError {
    /// The number of aircraft is zero or more than the bound.
    #[error("a formation has 1 to {AIRCRAFT_MAX} aircraft, found {0}")]
    Count(usize),
    /// The distance is not a positive number of at most 10 km.
    #[error("the distance between aircraft is more than 0 and at most 10000 m, found {0}")]
    Distance(f64),
    /// The name is not one of the layouts.
    #[error("a formation is one of linear, matrix, circular")]
    UnknownLayout,
}

impl core::str::FromStr for Layout {
    type Err = FormationError;
    fn from_str(name: &str) -> Result<Self, FormationError> {
        match name {
            "linear" => Ok(Self::Linear),
            "matrix" => Ok(Self::Matrix),
            "circular" => Ok(Self::Circular),
            _ => Err(FormationError::UnknownLayout),
        }
    }
}

impl Layout {
    /// The name that configuration files and flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Matrix => "matrix",
            Self::Circular => "circular",
        }
    }
}

impl Formation {
    /// A formation of `count` aircraft at least `distance_m` apart.
    ///
    /// # Errors
    /// No aircraft, more than [`AIRCRAFT_MAX`], or a distance that is not positive and finite.
    pub fn new(layout: Layout, count: usize, distance_m: f64) -> Result<Self, FormationError> {
        if count == 0 || count > AIRCRAFT_MAX {
            return Err(FormationError::Count(count));
        }
        // Written so that NaN is refused too.
        if !(distance_m > 0.0 && distance_m <= 10_000.0) {
            return Err(FormationError::Distance(distance_m));
        }
        Ok(Self { layout, count, distance_m })
    }
    /// The shape.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Number of aircraft.
    pub fn count(&self) -> usize {
        self.count
    }
    /// Least distance between two slots, metres.
    pub fn distance_m(&self) -> f64 {
        self.distance_m
    }
    /// The same shape with its aircraft `distance_m` apart (the landing formation).
    ///
    /// # Errors
    /// As [`Formation::new`].
    pub fn with_distance_m(&self, distance_m: f64) -> Result<Self, FormationError> {
        Self::new(self.layout, self.count, distance_m)
    }
    /// The slot in the middle, whose aircraft leads the flight.
    pub fn center_slot(&self) -> usize {
        match self.layout {
            Layout::Linear => self.count / 2,
            Layout::Matrix => {
                let (columns, rows) = self.matrix_size();
                (rows / 2) * columns + (columns - 1) / 2
            }
            Layout::Circular => 0,
        }
    }
    /// Columns and rows of full width of the matrix.
    fn matrix_size(&self) -> (usize, usize) {
        let columns = libm::ceil(libm::sqrt(self.count as f64)) as usize;
        (columns, self.count / columns)
    }
    /// Where `slot` lies from the centre slot before rotation: x to the right of the heading, y ahead, metres.
    fn offset_in_heading_m(&self, slot: usize) -> DVec2 {
        let d = self.distance_m;
        match self.layout {
            Layout::Linear => DVec2::new((slot as f64 - (self.count / 2) as f64) * d, 0.0),
            Layout::Matrix => {
                let (columns, rows) = self.matrix_size();
                let (column, row) = (slot % columns, slot / columns);
                DVec2::new(
                    (column as f64 - ((columns - 1) / 2) as f64) * d,
                    (row as f64 - (rows / 2) as f64) * d,
                )
            }
            Layout::Circular if slot == 0 => DVec2::ZERO,
            Layout::Circular => {
                let others = (self.count - 1) as f64;
                // Up to six neighbours fit at the distance itself; more need a wider circle.
                let radius_m =
                    if self.count <= 7 { d } else { d / (2.0 * libm::sin(core::f64::consts::PI / others)) };
                let angle_rad = (slot - 1) as f64 * core::f64::consts::TAU / others;
                DVec2::new(libm::cos(angle_rad), libm::sin(angle_rad)) * radius_m
            }
        }
    }
    /// Where `slot` lies from the centre slot, metres east (x) and north (y), for a formation whose
    /// heading is `heading_rad` clockwise from north (thesis equation 6.2).
    ///
    /// # Panics
    /// If `slot` is not below [`Formation::count`].
    pub fn offset_m(&self, slot: usize, heading_rad: f64) -> DVec2 {
        assert!(slot < self.count, "slot {slot} of {}", self.count);
        let o = self.offset_in_heading_m(slot);
        let (sin, cos) = libm::sincos(heading_rad);
        DVec2::new(o.x * cos + o.y * sin, o.y * cos - o.x * sin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layouts() -> impl Strategy<Value = Layout> {
        prop_oneof![Just(Layout::Linear), Just(Layout::Matrix), Just(Layout::Circular)]
    }

    proptest! {
        #[test]
        fn no_two_slots_are_closer_than_asked(
            layout in layouts(), count in 1..=AIRCRAFT_MAX, distance_m in 1.0..500.0f64, heading in 0.0..6.3f64,
        ) {
            let f = Formation::new(layout, count, distance_m).unwrap();
            for a in 0..count {
                for b in 0..a {
                    let apart = f.offset_m(a, heading).distance(f.offset_m(b, heading));
                    prop_assert!(apart >= distance_m * 0.999_999, "{a} {b}: {apart}");
                }
            }
            prop_assert!(f.offset_m(f.center_slot(), heading).length() < 1e-9);
        }
    }

    #[test]
    fn matrix_of_nine_is_centred_on_slot_four() {
        let f = Formation::new(Layout::Matrix, 9, 50.0).unwrap();
        assert_eq!(f.center_slot(), 4);
        assert_eq!(f.offset_m(0, 0.0), DVec2::new(-50.0, -50.0));
        assert_eq!(f.offset_m(8, 0.0), DVec2::new(50.0, 50.0));
    }

    #[test]
    fn heading_east_turns_ahead_into_east() {
        let f = Formation::new(Layout::Matrix, 9, 50.0).unwrap();
        let ahead = f.offset_m(7, core::f64::consts::FRAC_PI_2); // middle of the front row
        assert!(ahead.distance(DVec2::new(50.0, 0.0)) < 1e-9, "{ahead}");
    }

    #[test]
    fn refuses_what_cannot_be_flown() {
        assert_eq!(Formation::new(Layout::Linear, 0, 50.0), Err(FormationError::Count(0)));
        assert_eq!(Formation::new(Layout::Linear, 129, 50.0), Err(FormationError::Count(129)));
        assert!(Formation::new(Layout::Linear, 9, f64::NAN).is_err());
        assert!(Formation::new(Layout::Linear, 9, -1.0).is_err());
        assert_eq!("wedge".parse::<Layout>(), Err(FormationError::UnknownLayout));
    }
}
