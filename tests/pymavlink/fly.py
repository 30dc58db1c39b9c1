"""Drives one flight controller with pymavlink, as a ground station would.

Usage: fly.py tcp:HOST:PORT

Heartbeat, all parameters, one parameter set and read back, a mission up and down, a guided take-off, the
mission flown to its end in AUTO, guided once more, landing and disarming. Every wait has an end; the first
thing that does not happen is named and ends the script with code 1. It flies `wingbeat sim` and, for
comparison, ArduPilot's SITL.
"""

import os
import sys
import time

os.environ["MAVLINK20"] = "1"

from pymavlink import mavutil  # noqa: E402  (the variable above chooses the version)

WAIT_S = 60.0
FLIGHT_S = 180.0
link = None
beat_at = 0.0
reached = set()


def fail(text):
    print("FAILED: " + text)
    sys.exit(1)


def heard(types, what, accept=lambda m: True, wait_s=WAIT_S, again=None, again_s=2.0):
    """The next message whose type is among `types` that `accept` takes; `again` is called until it comes."""
    global beat_at
    types = [types] if isinstance(types, str) else types
    end = time.monotonic() + wait_s
    again_at = 0.0
    while time.monotonic() < end:
        now = time.monotonic()
        if now - beat_at > 0.2:
            beat_at = now
            link.mav.heartbeat_send(6, 8, 0, 0, 0)
        if again and now >= again_at:
            again_at = now + again_s
            again()
        message = link.recv_match(blocking=True, timeout=0.1)
        if message is None:
            continue
        # It may come while something else is waited for.
        if message.get_type() == "MISSION_ITEM_REACHED":
            reached.add(message.seq)
        if message.get_type() in types and accept(message):
            return message
    return fail("%s: not heard in %.0f s" % (what, wait_s))


def command(number, *p, what):
    """Sends a command once and expects it accepted."""
    p = list(p) + [0.0] * (7 - len(p))
    link.mav.command_long_send(link.target_system, 1, number, 0, *p)
    ack = heard("COMMAND_ACK", what, lambda m: m.command == number)
    if ack.result != 0:
        fail("%s: result %d, expected 0" % (what, ack.result))


def mode(number, what):
    def set_it():
        link.mav.set_mode_send(link.target_system, 1, number)

    heard("HEARTBEAT", what, lambda m: m.get_srcComponent() == 1 and m.custom_mode == number, again=set_it)


def armed(value, what, wait_s=WAIT_S):
    heard("HEARTBEAT", what, lambda m: m.get_srcComponent() == 1 and bool(m.base_mode & 128) == value, wait_s)


def read_parameters():
    link.mav.param_request_list_send(link.target_system, 1)
    values, count = {}, None
    while count is None or len(values) < count:
        message = heard("PARAM_VALUE", "a parameter of the list", lambda m: m.param_index != 65535)
        count = message.param_count
        values[message.param_index] = (message.param_id, message.param_value)
    names = dict(values.values())
    for name in ("SYSID_THISMAV", "WPNAV_SPEED", "FS_GCS_ENABLE", "RTL_ALT"):
        if name not in names:
            fail("parameters: %s is missing among %d" % (name, count))
    print("parameters: %d" % count)


def set_parameter(name, value):
    def send():
        link.mav.param_set_send(link.target_system, 1, name.encode(), value, 9)

    heard("PARAM_VALUE", "set " + name, lambda m: m.param_id == name, again=send)
    link.mav.param_request_read_send(link.target_system, 1, name.encode(), -1)
    got = heard("PARAM_VALUE", "read " + name, lambda m: m.param_id == name).param_value
    if got != value:
        fail("%s: read back %s, expected %s" % (name, got, value))


def mission(home):
    """Home, take-off, three waypoints (one with a delay), return. Relative altitudes."""
    lat, lon = home
    places = [(0, 22, 0, 0, 0, 10.0)]
    corners = [(0.0003, 0.0, 0.0), (0.0003, 0.0004, 1.0), (0.0, 0.0004, 0.0)]
    places += [(0, 16, delay, lat + int(n * 1e7), lon + int(e * 1e7), 12.0) for n, e, delay in corners]
    items = [(0, 16, 0.0, lat, lon, 0.0)] + [(3, c, p1, x, y, z) for _, c, p1, x, y, z in places]
    return items + [(3, 20, 0.0, 0, 0, 0.0)]


def upload(items):
    link.mav.mission_count_send(link.target_system, 1, len(items))
    while True:
        message = heard(["MISSION_REQUEST", "MISSION_REQUEST_INT", "MISSION_ACK"], "the upload's next step")
        if message.get_type() == "MISSION_ACK":
            if message.type != 0:
                fail("upload: result %d, expected 0" % message.type)
            return
        frame, number, p1, x, y, z = items[message.seq]
        link.mav.mission_item_int_send(
            link.target_system, 1, message.seq, frame, number, 0, 1, p1, 0, 0, 0, x, y, z
        )


def download(items):
    link.mav.mission_request_list_send(link.target_system, 1)
    count = heard("MISSION_COUNT", "the mission's count").count
    if count != len(items):
        fail("download: %d items, expected %d" % (count, len(items)))
    for seq in range(1, count):
        link.mav.mission_request_int_send(link.target_system, 1, seq)
        m = heard("MISSION_ITEM_INT", "item %d" % seq, lambda m, seq=seq: m.seq == seq)
        _, number, p1, x, y, z = items[seq]
        # A millimetre of latitude is 1e-8 degree: ArduPilot keeps 1e-7, and drops a place that is unused.
        same = (m.command, m.param1) == (number, p1) and (
            number != 16 or (abs(m.x - x) <= 1 and abs(m.y - y) <= 1 and abs(m.z - z) < 0.02)
        )
        if not same:
            fail("download: item %d is %s, expected %s" % (seq, m, items[seq]))
    link.mav.mission_ack_send(link.target_system, 1, 0)


def main():
    global link
    link = mavutil.mavlink_connection(sys.argv[1], source_system=255, source_component=190, retries=20)
    first = heard("HEARTBEAT", "a heartbeat", lambda m: m.get_srcComponent() == 1)
    link.target_system = first.get_srcSystem()
    if (first.type, first.autopilot) != (2, 3):
        fail("heartbeat: type %d autopilot %d, expected 2 and 3" % (first.type, first.autopilot))
    read_parameters()
    # A ground station that is busy for half a second is not to end this flight at ten times its speed.
    set_parameter("FS_GCS_ENABLE", 0.0)
    set_parameter("DISARM_DELAY", 0.0)
    set_parameter("RTL_ALT", 1200.0)
    link.mav.request_data_stream_send(link.target_system, 1, 0, 4, 1)
    heard("EKF_STATUS_REPORT", "a position", lambda m: m.flags & 16)
    here = heard("GLOBAL_POSITION_INT", "where it is", lambda m: m.lat != 0)

    items = mission((here.lat, here.lon))
    upload(items)
    download(items)
    print("mission: %d items up and down" % len(items))

    mode(4, "GUIDED")
    command(400, 1.0, what="arming")
    command(22, 0, 0, 0, 0, 0, 0, 10.0, what="take-off")
    heard("GLOBAL_POSITION_INT", "10 m", lambda m: m.relative_alt > 9_000, FLIGHT_S)
    print("took off")

    mode(3, "AUTO")
    armed(False, "the mission's end", FLIGHT_S)
    if not reached >= {1, 2, 3, 4}:
        fail("mission: reached %s, expected 1 to 4" % sorted(reached))
    end = heard("GLOBAL_POSITION_INT", "where it landed")
    if abs(end.lat - here.lat) > 300 or abs(end.lon - here.lon) > 300:
        fail("return: landed at %d %d, home is %d %d" % (end.lat, end.lon, here.lat, here.lon))
    print("mission flown")

    mode(4, "GUIDED again")
    command(400, 1.0, what="arming again")
    command(22, 0, 0, 0, 0, 0, 0, 6.0, what="take-off again")
    heard("GLOBAL_POSITION_INT", "6 m", lambda m: m.relative_alt > 5_000, FLIGHT_S)
    command(21, what="landing")
    armed(False, "disarming after landing", FLIGHT_S)
    print("landed")


main()
