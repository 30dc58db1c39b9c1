//! How many aircraft are set up to fly: asked, set, and compared with each other.

use std::collections::BTreeMap;

use wingbeat_api::{
    FleetFlightSetupWrite, FleetFlightSetups, FlightSetup, FlightSetupState, VehicleFlightSetup, paths,
};

use crate::client::Method;
use crate::parameters::{Asked, ask, each};

type Answer = (String, Result<FlightSetupState, String>);

/// What each is set up with.
pub(crate) async fn state(all: Vec<Asked>) -> FleetFlightSetups {
    fleet(each(all, |one| of_one(one, Method::GET, None)).await)
}

/// Sets all up alike, or each as it is configured.
pub(crate) async fn write(all: Vec<Asked>, write: &FleetFlightSetupWrite) -> FleetFlightSetups {
    let method = if write.setup.is_some() { Method::PUT } else { Method::DELETE };
    fleet(each(all, |one| of_one(one, method.clone(), write.setup.as_ref())).await)
}

async fn of_one(one: Asked, method: Method, body: Option<&FlightSetup>) -> Answer {
    let answer = ask(&one, method, paths::FLIGHT_SETUP, body).await;
    (one.party.id, answer)
}

/// What most have; of as many the first.
fn usual<'a>(setups: impl Iterator<Item = &'a FlightSetup>) -> Option<&'a FlightSetup> {
    let mut counts: Vec<(&FlightSetup, usize)> = vec![];
    for setup in setups {
        match counts.iter_mut().find(|(one, _)| *one == setup) {
            Some((_, count)) => *count += 1,
            None => counts.push((setup, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(setup, _)| setup)
}

fn fleet(answers: Vec<Answer>) -> FleetFlightSetups {
    let setups = || answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).map(|state| &state.setup);
    let of_all = usual(setups());
    // Two leaders are two swarms; one without a leader is compared with all.
    let leaders: Vec<_> = setups().filter_map(|setup| setup.leader.as_ref()).collect();
    let of_leader: BTreeMap<_, _> = leaders
        .into_iter()
        .filter_map(|leader| {
            Some((leader, usual(setups().filter(|setup| setup.leader.as_ref() == Some(leader)))?))
        })
        .collect();
    let differs = |setup: &FlightSetup| {
        let expected = setup.leader.as_ref().map_or(of_all, |leader| of_leader.get(leader).copied());
        expected.map_or(vec![], |expected| setup.differences(expected))
    };
    let of = |(id, answer): &Answer| match answer {
        Ok(state) => {
            let differs = differs(&state.setup);
            VehicleFlightSetup { id: id.clone(), state: Some(state.clone()), problem: None, differs }
        }
        Err(problem) => VehicleFlightSetup {
            id: id.clone(),
            state: None,
            problem: Some(problem.clone()),
            differs: vec![],
        },
    };
    FleetFlightSetups { vehicles: answers.iter().map(of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::{FlightProtocol, FlightSetupSource};

    fn muscop(leader: &str, formation: &str) -> FlightSetup {
        FlightSetup {
            leader: Some(leader.into()),
            formation: Some(formation.into()),
            ..FlightSetup::new(FlightProtocol::Muscop)
        }
    }

    #[test]
    fn an_aircraft_is_compared_with_most_of_its_swarm() {
        let answer = |(id, setup): (usize, FlightSetup)| {
            let source = FlightSetupSource::Operator;
            (id.to_string(), Ok(FlightSetupState { source, setup, choices: vec![], problem: None }))
        };
        let setups = [
            muscop("1", "linear"),
            muscop("1", "wedge"),
            muscop("1", "wedge"),
            // Another swarm.
            muscop("4", "circle"),
            FlightSetup::new(FlightProtocol::Mission),
        ];
        let mut answers: Vec<Answer> = setups.into_iter().enumerate().map(answer).collect();
        answers.push(("5".into(), Err("found armed motors".into())));
        let found: Vec<_> =
            fleet(answers).vehicles.into_iter().map(|one| (one.differs, one.problem)).collect();
        let line = |text: &str| (vec![text.to_owned()], None);
        let none = (vec![], None);
        let expected = [
            line("formation: linear, not wedge"),
            none.clone(),
            none.clone(),
            none,
            line("protocol: mission, not muscop"),
            (vec![], Some("found armed motors".into())),
        ];
        assert_eq!(found, expected);
    }
}
