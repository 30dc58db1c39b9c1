//! Fence and rally points of many aircraft: sent, read, and compared with what was sent.

use std::collections::BTreeMap;

use tokio::sync::Mutex;
use wingbeat_api::{FenceArea, FleetRegions, RallyPoint, Region, RegionState, VehicleRegion, paths};

use crate::client::Method;
use crate::parameters::{Asked, ask, each};

/// What was sent to each aircraft last, by id.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    sent: Mutex<BTreeMap<String, Region>>,
}

/// A place in 1e-7 degree: as a flight controller keeps it.
fn e7(deg: f64) -> i64 {
    (deg * 1e7).round() as i64
}

/// An area as it is compared: a radius in tenths of a metre.
fn canonical(area: &FenceArea) -> (bool, Vec<(i64, i64)>, i64) {
    match area {
        FenceArea::Polygon { inclusion, corners } => {
            let corners = corners.iter().map(|c| (e7(c.latitude_deg), e7(c.longitude_deg))).collect();
            (*inclusion, corners, 0)
        }
        FenceArea::Circle { inclusion, centre, radius_m } => {
            let centre = (e7(centre.latitude_deg), e7(centre.longitude_deg));
            (*inclusion, vec![centre], (radius_m * 10.0).round() as i64)
        }
    }
}

/// What of the fence that is held is not as it is expected.
fn fence_differs(held: &[FenceArea], expected: &[FenceArea]) -> Option<String> {
    if held.len() != expected.len() {
        return Some(format!("fence: found {} areas, expected {}", held.len(), expected.len()));
    }
    let other = held.iter().zip(expected).position(|(held, expected)| canonical(held) != canonical(expected));
    other.map(|i| format!("fence: area {} is another than expected", i + 1))
}

fn rally_differs(held: &[RallyPoint], expected: &[RallyPoint]) -> Option<String> {
    if held.len() != expected.len() {
        return Some(format!("rally: found {} points, expected {}", held.len(), expected.len()));
    }
    let canonical = |p: &RallyPoint| (e7(p.latitude_deg), e7(p.longitude_deg), p.height_m);
    let other = held.iter().zip(expected).position(|(held, expected)| canonical(held) != canonical(expected));
    other.map(|i| format!("rally: point {} is another than expected", i + 1))
}

/// What an aircraft holds otherwise than it was sent, or than the first that has read its own.
fn differences(state: &RegionState, sent: Option<&Region>, first: &Region) -> Vec<String> {
    let fence = sent.and_then(|sent| sent.fence.as_ref()).or(first.fence.as_ref());
    let rally = sent.and_then(|sent| sent.rally.as_ref()).or(first.rally.as_ref());
    let fence = state.fence.as_ref().zip(fence).and_then(|(held, expected)| fence_differs(held, expected));
    let rally = state.rally.as_ref().zip(rally).and_then(|(held, expected)| rally_differs(held, expected));
    fence.into_iter().chain(rally).collect()
}

impl Desk {
    /// What each holds now, compared.
    pub(crate) async fn state(&self, all: Vec<Asked>) -> FleetRegions {
        self.fleet(each(all, |one| one_of(one, Method::GET, None)).await).await
    }

    /// Each reads its own anew.
    pub(crate) async fn read(&self, all: Vec<Asked>) -> FleetRegions {
        self.fleet(each(all, |one| one_of(one, Method::POST, None)).await).await
    }

    /// Each is sent the same; what one refuses it was not sent.
    pub(crate) async fn write(&self, all: Vec<Asked>, region: &Region) -> FleetRegions {
        let answers = each(all, |one| one_of(one, Method::PUT, Some(region))).await;
        let mut sent = self.sent.lock().await;
        for (id, _) in answers.iter().filter(|(_, answer)| answer.is_ok()) {
            let kept = sent.entry(id.clone()).or_default();
            kept.fence = region.fence.clone().or(kept.fence.take());
            kept.rally = region.rally.clone().or(kept.rally.take());
        }
        drop(sent);
        self.fleet(answers).await
    }

    async fn fleet(&self, answers: Vec<(String, Result<RegionState, String>)>) -> FleetRegions {
        let sent = self.sent.lock().await;
        let states = || answers.iter().filter_map(|(_, answer)| answer.as_ref().ok());
        let first = Region {
            fence: states().find_map(|state| state.fence.clone()),
            rally: states().find_map(|state| state.rally.clone()),
        };
        let of = |(id, answer): (String, Result<RegionState, String>)| {
            let (state, problem) = match answer {
                Ok(state) => (Some(state), None),
                Err(problem) => (None, Some(problem)),
            };
            // While they are sent they differ.
            let settled = state.as_ref().filter(|state| state.work == wingbeat_api::RegionWork::None);
            let differs = settled.map_or(vec![], |state| differences(state, sent.get(&id), &first));
            VehicleRegion { id, state, problem, differs }
        };
        FleetRegions { vehicles: answers.into_iter().map(of).collect() }
    }
}

async fn one_of(one: Asked, method: Method, body: Option<&Region>) -> (String, Result<RegionState, String>) {
    let answer = ask(&one, method, paths::REGION, body).await;
    (one.party.id, answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::GroundPoint;

    fn circle(radius_m: f64) -> FenceArea {
        let centre = GroundPoint { latitude_deg: 39.482_594, longitude_deg: -0.346_265 };
        FenceArea::Circle { inclusion: true, centre, radius_m }
    }

    fn holds(radius_m: f64, height_m: i16) -> RegionState {
        let rally = RallyPoint { latitude_deg: 39.48, longitude_deg: -0.34, height_m };
        RegionState { fence: Some(vec![circle(radius_m)]), rally: Some(vec![rally]), ..Default::default() }
    }

    #[tokio::test]
    async fn an_aircraft_is_compared_with_what_it_was_sent_and_else_with_the_first() {
        let desk = Desk::default();
        let answers = || {
            vec![
                ("1".to_owned(), Ok(holds(50.0, 20))),
                ("2".to_owned(), Ok(holds(60.0, 20))),
                ("3".to_owned(), Ok(RegionState::default())),
                ("4".to_owned(), Err("it does not answer".to_owned())),
            ]
        };
        let differs = |fleet: FleetRegions| -> Vec<Vec<String>> {
            fleet.vehicles.into_iter().map(|vehicle| vehicle.differs).collect()
        };
        let fence = || vec!["fence: area 1 is another than expected".to_owned()];
        assert_eq!(differs(desk.fleet(answers()).await), [vec![], fence(), vec![], vec![]]);
        let sent = Region { fence: Some(vec![circle(60.0)]), rally: Some(vec![]) };
        desk.sent.lock().await.extend([("1".to_owned(), sent.clone()), ("2".to_owned(), sent)]);
        let rally = || "rally: found 1 points, expected 0".to_owned();
        let both = [fence(), vec![rally()]].concat();
        assert_eq!(differs(desk.fleet(answers()).await), [both, vec![rally()], vec![], vec![]]);
    }
}
