//! The section `fence`: where waypoints may lie, under every protocol.

use serde::Deserialize;
use wingbeat_agent::Coordination;

use super::values::set;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fence {
    height_least_m: Option<f64>,
    height_most_m: Option<f64>,
    distance_most_m: Option<f64>,
}

impl Fence {
    pub(super) fn apply(&self, coordination: &mut Coordination) {
        let [least_m, most_m, distance_m] = limits_of(coordination);
        set(least_m, self.height_least_m);
        set(most_m, self.height_most_m);
        set(distance_m, self.distance_most_m);
    }
}

/// Waypoints may lie where they may under another protocol.
pub(crate) fn copy_fence(from: &Coordination, to: &mut Coordination) {
    let from = limits_of(&mut from.clone()).map(|limit| *limit);
    limits_of(to).into_iter().zip(from).for_each(|(limit, from)| *limit = from);
}

fn limits_of(coordination: &mut Coordination) -> [&mut f64; 3] {
    match coordination {
        Coordination::Mission(mission) => fence_of(mission),
        Coordination::Sweep(sweep) => fence_of(&mut sweep.mission),
        Coordination::Mbcap(c) => [&mut c.height_least_m, &mut c.height_most_m, &mut c.distance_most_m],
        Coordination::Muscop(muscop) => fence_of_swarm(&mut muscop.swarm),
        Coordination::FollowMe(follow_me) => fence_of_swarm(&mut follow_me.swarm),
    }
}

fn fence_of(mission: &mut wingbeat_protocol::mission::Config) -> [&mut f64; 3] {
    let fence = &mut mission.fence;
    [&mut fence.height_least_m, &mut fence.height_most_m, &mut fence.distance_most_m]
}

fn fence_of_swarm(swarm: &mut wingbeat_protocol::swarm::Config) -> [&mut f64; 3] {
    [&mut swarm.height_least_m, &mut swarm.height_most_m, &mut swarm.distance_most_m]
}
