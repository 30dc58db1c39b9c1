"""High-level logic of one aircraft of a flock: it keeps apart from those that it hears, flies as they do, and stays with them (C. Reynolds,
"Flocks, herds and schools", SIGGRAPH 1987). It knows neither how many they are nor a place in a formation, and only some know the way.

Usage: flock.py tcp:HOST:PORT RADIO EAST_M NORTH_M (where it starts) leads|follows
"""

import math
import sys
import time

from copter import Copter
from swarm import Swarm, distance_m

HEIGHT_M = 15.0
# All are up by then.
BEGIN_S = 75.0
# Where to, degrees from north, and for how long.
LEGS = [(0.0, 30.0), (90.0, 30.0), (180.0, 30.0)]
SPEED_M_S = 4.0
SPEED_MOST_M_S = 6.0
PERIOD_S = 0.4
# Nearer than this they fly apart,
APART_M = 14.0
APART_PER_S = 0.5
# farther from the middle of the others than this they fly together,
TOGETHER_M = 12.0
TOGETHER_PER_S = 0.1
# and by this share of the difference they fly as the others do.
ALIKE = 0.4
# A flock of those that begin at random takes a moment; what it is like is noted from then on.
SETTLED_S = 12.0

craft = Copter(sys.argv[1])
swarm = Swarm(craft, *sys.argv[2:5])
knows_the_way = sys.argv[5] == "leads"
craft.take_off(HEIGHT_M)
while time.time() < craft.began + BEGIN_S:
    craft.receive()
orders, nearest_m, spread_m = [], [], []


def wanted(direction_deg):
    """East and north, m/s."""
    east, north, *own = swarm.here()
    others = [state for state, _ in swarm.others()]
    mean = [sum(column) / len(others) for column in zip(*others)] if others else None
    way = math.radians(direction_deg)
    go = [SPEED_M_S * math.sin(way), SPEED_M_S * math.cos(way)]
    if not knows_the_way:
        go = mean[2:] if mean else [0.0, 0.0]
    for other in others:
        far_m = max(distance_m(other, (east, north)), 0.1)
        push = APART_PER_S * max(0.0, APART_M - far_m) / far_m
        go[0] += push * (east - other[0])
        go[1] += push * (north - other[1])
    if mean:
        far_m = max(distance_m(mean, (east, north)), 0.1)
        pull = TOGETHER_PER_S * max(0.0, far_m - TOGETHER_M) / far_m
        go[0] += pull * (mean[0] - east) + ALIKE * (mean[2] - own[0])
        go[1] += pull * (mean[1] - north) + ALIKE * (mean[3] - own[1])
    speed_m_s = math.hypot(*go)
    return [rate * min(1.0, SPEED_MOST_M_S / speed_m_s) for rate in go] if speed_m_s > 0.0 else go


def note():
    """How much alike they fly (1: all in one direction), who is nearest, and how far the farthest is."""
    here, others = swarm.here(), [state for state, _ in swarm.others()]
    rates = [(state[2], state[3]) for state in [here, *others]]
    units = [(east / length, north / length) for east, north in rates if (length := math.hypot(east, north)) > 0.1]
    orders.append(math.hypot(*map(sum, zip(*units))) / len(units) if units else 0.0)
    far_m = [distance_m(other, here) for other in others]
    nearest_m.append(min(far_m, default=math.inf))
    spread_m.append(max(far_m, default=0.0))


for direction_deg, lasts_s in LEGS:
    end, leg_began = time.time() + lasts_s, time.time()
    while time.time() < end:
        swarm.fly(*wanted(direction_deg), HEIGHT_M)
        if time.time() - leg_began > SETTLED_S:
            note()
        again_at = time.time() + PERIOD_S
        while time.time() < again_at:
            craft.receive()
print(
    "flock: order %.3f, nearest %.1f m, farthest %.1f m, others %d, datagrams %d"
    % (sum(orders) / len(orders), min(nearest_m), max(spread_m), len(swarm.others()), swarm.count)
)
craft.land()
