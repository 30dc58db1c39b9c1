"""High-level logic of one aircraft that covers an area with others: it flies to the nearest cell that none has covered and none that it hears
is nearer to, and all say which cells they know to be covered. None is given a part of the area.

Usage: cover.py tcp:HOST:PORT RADIO EAST_M NORTH_M (where it starts) NUMBER (its height, in layers)
"""

import sys
import time

from copter import Copter
from swarm import Swarm, distance_m

# The area, from the frame's origin to the east and north, in cells.
COLUMNS, ROWS, CELL_M = 8, 6, 25.0
# All are up by then; each in a layer of its own, as they cross each other's ways.
BEGIN_S = 75.0
HEIGHT_M, LAYER_M = 10.0, 6.0
COVERED_M = 3.0
PERIOD_S = 0.4
LIMIT_S = 600.0

craft = Copter(sys.argv[1])
swarm = Swarm(craft, *sys.argv[2:5])
height_m = HEIGHT_M + LAYER_M * int(sys.argv[5])
cells = [((column + 0.5) * CELL_M, (row + 0.5) * CELL_M) for row in range(ROWS) for column in range(COLUMNS)]
covered, own = 0, 0


def go_to(east_m, north_m):
    craft.go_to_local(north_m - swarm.start[1], east_m - swarm.start[0], height_m)


def is_in_its_layer():
    return craft.place()[2] > height_m - 0.5


craft.take_off(HEIGHT_M)
craft.until("in its layer", is_in_its_layer, lambda: go_to(*swarm.start))
while time.time() < craft.began + BEGIN_S:
    craft.receive()
began = time.time()


def choice():
    """The cell to fly to; one that another is nearer to only where there is no other."""
    here, others = swarm.here(), [state for state, _ in swarm.others()]
    left = [number for number in range(len(cells)) if not covered >> number & 1]
    ours = [n for n in left if all(distance_m(here, cells[n]) <= distance_m(other, cells[n]) for other in others)]
    return min(ours or left, key=lambda number: (distance_m(here, cells[number]), number), default=None)


target, ask_at = None, 0.0
while covered != (1 << len(cells)) - 1:
    if time.time() - began > LIMIT_S:
        sys.exit("covered: not within %.0f s" % LIMIT_S)
    for _, said in swarm.others():
        covered |= int.from_bytes(said, "little")
    for number, cell in enumerate(cells):
        if distance_m(swarm.here(), cell) < COVERED_M and not covered >> number & 1:
            covered |= 1 << number
            own += 1
    swarm.said = covered.to_bytes((len(cells) + 7) // 8, "little")
    # ArduCopter begins a leg anew with each target.
    if target is None or covered >> target & 1 or time.time() >= ask_at:
        target, ask_at = choice(), time.time() + 2.0
        if target is not None:
            go_to(*cells[target])
    again_at = time.time() + PERIOD_S
    while time.time() < again_at:
        craft.receive()
print("covered: %d of %d cells itself, after %.1f s, datagrams %d" % (own, len(cells), time.time() - began, swarm.count))


def is_back():
    return distance_m(swarm.here(), swarm.start) < 1.5


craft.until("back", is_back, lambda: go_to(*swarm.start))
craft.land()
