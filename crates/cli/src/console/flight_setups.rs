//! How the aircraft are to fly: shown, set, cleared.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use wingbeat_api::{
    FleetFlightSetupWrite, FleetFlightSetups, FleetPicture, FlightProtocol, FlightSetup, FlightSetupSource,
    paths,
};
use wingbeat_ground::remote::{Method, Remote};

use super::orders::{Targets, id_of};
use super::service::Service;
use super::{Code, show};

/// The protocols by their names in the configuration.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Protocol {
    /// A swarm in formation flies one mission.
    Muscop,
    /// Each flies its own mission and gives way to others.
    Mbcap,
    /// A formation follows an aircraft that a pilot flies.
    FollowMe,
    /// Each flies its own mission, and nothing keeps them apart.
    Mission,
    /// Each searches its strip of an area.
    Sweep,
}

/// What is set; what is not stated stays as each aircraft is configured.
#[derive(Args, Debug)]
pub(crate) struct Stated {
    /// The protocol.
    #[arg(long)]
    protocol: Protocol,
    /// MBCAP: mbcap-e, or mbcap as published.
    #[arg(long)]
    variant: Option<String>,
    /// MUSCOP: the aircraft that plans; FollowMe: the one that a pilot flies. Its id, or its display name.
    #[arg(long, value_name = "AIRCRAFT")]
    leader: Option<String>,
    /// MUSCOP, FollowMe: how many aircraft fly.
    #[arg(long, value_name = "NUMBER")]
    aircraft: Option<u16>,
    /// MUSCOP, FollowMe: the formation's name.
    #[arg(long, value_name = "NAME")]
    formation: Option<String>,
    /// MUSCOP, FollowMe: distance between slots in flight, metres.
    #[arg(long, value_name = "METRES")]
    distance_m: Option<f64>,
    /// MUSCOP, FollowMe: distance between slots when landing, metres.
    #[arg(long, value_name = "METRES")]
    landing_distance_m: Option<f64>,
    /// FollowMe: height above home at which the followers gather, metres.
    #[arg(long, value_name = "METRES")]
    height_m: Option<f64>,
    /// MBCAP, Mission, Sweep: speed along the legs, metres per second.
    #[arg(long, value_name = "SPEED")]
    speed_m_s: Option<f64>,
    /// MUSCOP: sequential or simultaneous.
    #[arg(long, value_name = "MANNER")]
    take_off: Option<String>,
    /// MUSCOP: sequential or simultaneous; FollowMe: in_place or formation.
    #[arg(long, value_name = "MANNER")]
    landing: Option<String>,
}

impl Stated {
    fn setup(&self, picture: &FleetPicture) -> Result<FlightSetup> {
        let leader = self.leader.as_deref().map(|leader| id_of(picture, leader)).transpose()?;
        let protocol = match self.protocol {
            Protocol::Muscop => FlightProtocol::Muscop,
            Protocol::Mbcap => FlightProtocol::Mbcap,
            Protocol::FollowMe => FlightProtocol::FollowMe,
            Protocol::Mission => FlightProtocol::Mission,
            Protocol::Sweep => FlightProtocol::Sweep,
        };
        Ok(FlightSetup {
            variant: self.variant.clone(),
            leader,
            aircraft: self.aircraft,
            formation: self.formation.clone(),
            distance_m: self.distance_m,
            landing_distance_m: self.landing_distance_m,
            height_m: self.height_m,
            speed_m_s: self.speed_m_s,
            take_off: self.take_off.clone(),
            landing: self.landing.clone(),
            ..FlightSetup::new(protocol)
        })
    }
}

/// What is done with them.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// How each aircraft is to fly, and where that is from. Exit code 1 where aircraft of one swarm differ or one does not answer.
    Show {
        #[command(flatten)]
        service: Service,
    },
    /// Set the flight up, on the ground before it begins: over each aircraft's configuration, until it is set or cleared again.
    Set {
        #[command(flatten)]
        stated: Box<Stated>,
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        service: Service,
    },
    /// Back to each aircraft's configuration, on the ground before the flight begins.
    Clear {
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        service: Service,
    },
}

impl Command {
    pub(crate) fn service(&self) -> &Service {
        match self {
            Self::Show { service } | Self::Set { service, .. } | Self::Clear { service, .. } => service,
        }
    }
}

pub(crate) async fn run(remote: &Remote, command: &Command) -> Result<Code> {
    let json = command.service().json;
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    let (targets, setup) = match command {
        Command::Show { .. } => return answer(json, &remote.get(paths::FLEET_FLIGHT_SETUP).await?, &picture),
        Command::Set { stated, targets, .. } => (targets, Some(stated.setup(&picture)?)),
        Command::Clear { targets, .. } => (targets, None),
    };
    let write = FleetFlightSetupWrite { vehicles: targets.listed(&picture)?, setup };
    let done = remote.ask(Method::PUT, paths::FLEET_FLIGHT_SETUP, Some(&write)).await?;
    answer(json, &done.json()?, &picture)
}

fn answer(json: bool, fleet: &FleetFlightSetups, picture: &FleetPicture) -> Result<Code> {
    let (text, is_all) = shown(fleet, |id| show::name_of(picture, id));
    show::answer(json, fleet, |_| text)?;
    Ok(if is_all { Code::Done } else { Code::NotAll })
}

/// A line for each aircraft, and one for each thing that is wrong; whether nothing is.
fn shown(fleet: &FleetFlightSetups, name_of: impl Fn(&str) -> String) -> (String, bool) {
    let (mut text, mut is_all) = (String::new(), !fleet.vehicles.is_empty());
    for vehicle in &fleet.vehicles {
        let name = name_of(&vehicle.id);
        match &vehicle.state {
            None => {
                is_all = false;
                text.push_str(&format!("{name}: not known\n"));
            }
            Some(state) => {
                let source = match state.source {
                    FlightSetupSource::Configuration => "configuration",
                    FlightSetupSource::Operator => "operator",
                };
                text.push_str(&format!("{name}: {} ({source})\n", show::plain(&state.setup.to_string())));
            }
        }
        let kept = vehicle.state.as_ref().and_then(|state| state.problem.as_ref());
        for problem in vehicle.problem.iter().chain(&vehicle.differs).chain(kept) {
            text.push_str(&format!("  {}\n", show::plain(problem)));
            is_all = false;
        }
    }
    (text, is_all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::{FlightSetupState, VehicleFlightSetup};

    #[test]
    fn what_differs_or_was_refused_is_a_line_and_no_success() {
        let setup = FlightSetup { speed_m_s: Some(4.0), ..FlightSetup::new(FlightProtocol::Mission) };
        let state =
            FlightSetupState { source: FlightSetupSource::Operator, setup, choices: vec![], problem: None };
        let vehicle = |id: &str, state: Option<FlightSetupState>| VehicleFlightSetup {
            id: id.into(),
            problem: state.is_none().then(|| "found armed motors".into()),
            state,
            differs: vec![],
        };
        let mut fleet = FleetFlightSetups { vehicles: vec![vehicle("a", Some(state.clone()))] };
        let line = "a: mission, speed_m_s 4 (operator)\n".to_owned();
        assert_eq!(shown(&fleet, str::to_owned), (line.clone(), true));
        fleet.vehicles.push(vehicle("b", None));
        let expected = format!("{line}b: not known\n  found armed motors\n");
        assert_eq!(shown(&fleet, str::to_owned), (expected, false));
        // What no aircraft stated agrees with nothing.
        fleet.vehicles[1].problem = None;
        assert!(!shown(&fleet, str::to_owned).1);
        fleet.vehicles.clear();
        assert!(!shown(&fleet, str::to_owned).1);
    }
}
