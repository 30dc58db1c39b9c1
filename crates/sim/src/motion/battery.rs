//! A lithium polymer battery by energy: power drawn from flight, charge taken, voltage from the state
//! of charge and the sag of the current.
//!
//! Power is that of a rotor in momentum theory: it grows with thrust to the power of 3/2, a climb adds
//! the work against gravity, and translational lift takes some off in slow forward flight before drag
//! adds it again.

use super::{GRAVITY_M_S2, State, bounded};

/// Open-circuit voltage of one cell at 0, 10, … 100 % charge (a typical LiPo discharge curve).
const CELL_V: [f64; 11] = [3.27, 3.61, 3.69, 3.71, 3.75, 3.80, 3.84, 3.90, 3.98, 4.08, 4.20];
/// Speed at which translational lift saves most, and how much of the hover power it saves there.
const EASIEST_SPEED_M_S: f64 = 7.0;
const EASIEST_SAVING: f64 = 0.12;
/// Share of the electrical power that becomes climb power.
const CLIMB_EFFICIENCY: f64 = 0.6;
/// Power of idling motors as a part of the hover power.
const IDLE_PART: f64 = 0.06;

/// What the battery and its load are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatteryParameters {
    /// Charge of a full battery, BATT_CAPACITY.
    pub capacity_mah: f64,
    /// Cells in series.
    pub cells: u8,
    /// Internal resistance of the pack.
    pub resistance_ohm: f64,
    /// Electrical power of a hover.
    pub hover_power_w: f64,
    /// Mass of the aircraft: what a climb lifts.
    pub mass_kg: f64,
    /// Flight controller, companion computer and radio.
    pub avionics_power_w: f64,
}

impl Default for BatteryParameters {
    /// A 3 kg quad on 4S 10 Ah that hovers for about half an hour.
    fn default() -> Self {
        Self {
            capacity_mah: 10_000.0,
            cells: 4,
            resistance_ohm: 0.02,
            hover_power_w: 280.0,
            mass_kg: 3.0,
            avionics_power_w: 10.0,
        }
    }
}

/// The battery and what is left in it.
#[derive(Clone, Debug)]
pub struct Battery {
    parameters: BatteryParameters,
    used_mah: f64,
    used_wh: f64,
    current_a: f64,
    voltage_v: f64,
}

impl Battery {
    /// A full battery. Values outside what a battery can be are brought to the nearest that can.
    pub fn new(parameters: BatteryParameters) -> Self {
        let parameters = BatteryParameters {
            capacity_mah: bounded(parameters.capacity_mah, 1.0, 1e7),
            cells: parameters.cells.clamp(1, 24),
            resistance_ohm: bounded(parameters.resistance_ohm, 0.0, 1.0),
            hover_power_w: bounded(parameters.hover_power_w, 0.0, 1e5),
            mass_kg: bounded(parameters.mass_kg, 0.0, 1e3),
            avionics_power_w: bounded(parameters.avionics_power_w, 0.0, 1e4),
        };
        let mut new = Self { parameters, used_mah: 0.0, used_wh: 0.0, current_a: 0.0, voltage_v: 0.0 };
        new.draw(parameters.avionics_power_w);
        new
    }

    /// One with this charge left, 0 to 100.
    pub fn at(parameters: BatteryParameters, percent: f64) -> Self {
        let mut new = Self::new(parameters);
        new.used_mah = new.parameters.capacity_mah * (1.0 - bounded(percent, 0.0, 100.0) / 100.0);
        new.draw(parameters.avionics_power_w);
        new
    }

    /// Takes what flying so for `dt_s` costs.
    pub fn step(&mut self, dt_s: f64, state: &State) {
        let dt_s = bounded(dt_s, 0.0, 3600.0);
        self.draw(self.power_w(state));
        let hours = dt_s / 3600.0;
        self.used_mah = (self.used_mah + self.current_a * hours * 1000.0).min(self.parameters.capacity_mah);
        self.used_wh += self.current_a * self.voltage_v * hours;
    }

    /// Electrical power that this motion takes.
    pub fn power_w(&self, state: &State) -> f64 {
        let p = &self.parameters;
        if state.throttle <= 0.0 {
            return p.avionics_power_w;
        }
        let upward = state.acceleration.z + GRAVITY_M_S2;
        let (roll_rad, pitch_rad) = state.roll_pitch_rad();
        let lean = libm::cos(roll_rad) * libm::cos(pitch_rad);
        let thrust = bounded(upward / (GRAVITY_M_S2 * lean.max(0.3)), 0.0, 3.0);
        let speed = libm::hypot(state.velocity.x, state.velocity.y);
        // A parabola through the hover with its lowest point at the easiest speed, then drag.
        let part = bounded(speed / EASIEST_SPEED_M_S, 0.0, 3.0);
        let forward = 1.0 - EASIEST_SAVING * part * (2.0 - part);
        let on_ground = state.landed && speed < 0.1;
        let lift = if on_ground { IDLE_PART } else { thrust * libm::sqrt(thrust) * forward };
        let climb = p.mass_kg * GRAVITY_M_S2 * state.velocity.z / CLIMB_EFFICIENCY;
        // A descent saves, but motors never charge.
        p.avionics_power_w + (p.hover_power_w * lift + climb).max(p.hover_power_w * IDLE_PART)
    }

    /// Solves `power = (open-circuit voltage − current·resistance)·current` for the current.
    fn draw(&mut self, power_w: f64) {
        let open_v = self.open_circuit_v();
        let r = self.parameters.resistance_ohm;
        let under_root = (open_v * open_v - 4.0 * r * power_w).max(0.0);
        self.current_a = if self.remaining_percent() <= 0.0 {
            0.0
        } else if r > 1e-9 {
            (open_v - libm::sqrt(under_root)) / (2.0 * r)
        } else {
            power_w / open_v
        };
        self.voltage_v = open_v - self.current_a * r;
    }

    fn open_circuit_v(&self) -> f64 {
        let tenths = bounded(self.remaining_percent() / 10.0, 0.0, 10.0);
        let below = (libm::floor(tenths) as usize).min(9);
        let part = tenths - below as f64;
        let cell = CELL_V[below] + (CELL_V[below + 1] - CELL_V[below]) * part;
        cell * f64::from(self.parameters.cells)
    }

    /// Current drawn now.
    pub fn current_a(&self) -> f64 {
        self.current_a
    }

    /// Voltage at the terminals now.
    pub fn voltage_v(&self) -> f64 {
        self.voltage_v
    }

    /// Charge left, 0 to 100.
    pub fn remaining_percent(&self) -> f64 {
        100.0 * (1.0 - self.used_mah / self.parameters.capacity_mah)
    }

    /// Charge taken since the battery was full.
    pub fn used_mah(&self) -> f64 {
        self.used_mah
    }

    /// Energy taken since the battery was full.
    pub fn used_wh(&self) -> f64 {
        self.used_wh
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::{DVec2, DVec3};

    use super::*;

    fn flying(velocity: DVec3) -> State {
        State {
            position: DVec3::new(0.0, 0.0, 20.0),
            velocity,
            acceleration: DVec3::ZERO,
            lean_m_s2: DVec2::ZERO,
            yaw_rad: 0.0,
            yaw_rate_rad_s: 0.0,
            throttle: 0.5,
            landed: false,
        }
    }

    #[test]
    fn hovering_takes_the_hover_energy_and_the_voltage_falls() {
        let mut battery = Battery::new(BatteryParameters::default());
        let full_v = battery.voltage_v();
        for _ in 0..600 {
            battery.step(1.0, &flying(DVec3::ZERO));
        }
        // 290 W for ten minutes.
        assert!((battery.used_wh() - 290.0 / 6.0).abs() < 0.01, "{}", battery.used_wh());
        let expected_a = 290.0 / battery.voltage_v();
        assert!((battery.current_a() - expected_a).abs() < 0.01, "{} A", battery.current_a());
        assert!(battery.voltage_v() < full_v);
        assert!((60.0..75.0).contains(&battery.remaining_percent()), "{}", battery.remaining_percent());
    }

    #[test]
    fn climbing_costs_more_and_descending_less_than_hovering() {
        let battery = Battery::new(BatteryParameters::default());
        let power = |z| battery.power_w(&flying(DVec3::new(0.0, 0.0, z)));
        assert!(power(2.0) > power(0.0) + 90.0);
        assert!(power(-1.5) < power(0.0));
        assert!(battery.power_w(&flying(DVec3::new(20.0, 0.0, 0.0))) > power(0.0));
        assert!(battery.power_w(&flying(DVec3::new(7.0, 0.0, 0.0))) < power(0.0));
    }

    #[test]
    fn an_empty_battery_stays_empty() {
        let parameters = BatteryParameters { capacity_mah: 100.0, ..BatteryParameters::default() };
        let mut battery = Battery::new(parameters);
        for _ in 0..1000 {
            battery.step(1.0, &flying(DVec3::ZERO));
        }
        assert_eq!(battery.remaining_percent(), 0.0);
        assert_eq!(battery.current_a(), 0.0);
        assert!(battery.voltage_v() > 0.0);
    }
}
