//! The operator's console with a radio of its own in the simulated world.

use std::sync::Arc;

use wingbeat_agent::Command;
use wingbeat_console::{Console, Press};
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_wire::{CommandId, Opened, Refused};

use super::{Scheduled, World, mixed};
use crate::keys::CONSOLE;

/// The ground service repeats an emergency command for so long.
const LIMIT: Duration = Duration::from_secs(60);

/// A console, and when it wants to send next.
pub(super) struct Desk {
    console: Console,
    wake_at: Instant,
}

impl World {
    /// Sets up the operator's console, before anything was sent: its radio is the last of the medium, and stands there.
    #[must_use]
    pub fn with_console(mut self, at: DVec3) -> Self {
        self.positions.push(at);
        self.desk = Some(Desk { console: Console::new(CONSOLE, 0), wake_at: Instant::NEVER });
        self
    }

    /// The operator presses a key: the console orders it by radio until each of these aircraft has carried it out.
    ///
    /// # Panics
    /// Without a console, or if the id is longer than an id.
    pub fn press(&mut self, id: &str, command: Command, vehicles: &[usize]) {
        let flight = match command {
            Command::Exclude { .. } => {
                self.vehicles.first().map_or(0, |first| first.agent.view().swarm.flight)
            }
            Command::Setup
            | Command::Start
            | Command::Hold
            | Command::Return
            | Command::Land
            | Command::Resume
            | Command::RecoverControl
            | Command::Engage
            | Command::SetParameters => 0,
        };
        let press = Press { id: CommandId::try_from(id).expect("an id"), command, flight };
        let ids: Vec<_> = vehicles.iter().map(|&vehicle| self.vehicles[vehicle].agent.id()).collect();
        let now = self.now;
        let desk = self.desk.as_mut().expect("this world has a console");
        for id in ids {
            desk.console.begin(now, &press, id, now + LIMIT);
        }
        self.wake_console_at();
    }

    /// Whether the console still repeats an order for an aircraft.
    pub fn console_repeats(&self, id: &str, vehicle: usize) -> bool {
        let vehicle = self.vehicles[vehicle].agent.id();
        self.desk.as_ref().is_some_and(|desk| desk.console.repeats(id, vehicle))
    }

    fn wake_console_at(&mut self) {
        let Some(desk) = &mut self.desk else { return };
        let at = desk.console.poll_timeout();
        if at < desk.wake_at {
            desk.wake_at = at;
            self.push(at.max(self.now), Scheduled::Console);
        }
    }

    pub(super) fn wake_console(&mut self) {
        let (now, mut sealed) = (self.now, Vec::new());
        let Some(desk) = &mut self.desk else { return };
        if desk.wake_at > now {
            return;
        }
        desk.wake_at = Instant::NEVER;
        let signer = self.keys.console();
        desk.console.poll(now, |draft| sealed.push(Arc::<[u8]>::from(signer.seal(draft))));
        let radio = self.vehicles.len();
        self.locate();
        for bytes in sealed {
            self.trace = mixed(self.trace, now, radio, 6, &bytes);
            self.transmit(radio, bytes);
        }
        self.carry();
        self.wake_console_at();
    }

    pub(super) fn console_receives(&mut self, opened: Result<Opened<'_>, Refused>) {
        if let (Some(desk), Ok(opened)) = (&mut self.desk, opened) {
            // What it answers is in the console's own list.
            let _ = desk.console.on_datagram(&opened);
        }
    }
}
