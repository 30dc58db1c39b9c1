"""A ground station beside Wingbeat, with pymavlink: reads, waits for a line, takes over by a mode change.

Usage: beside_pymavlink.py tcp:HOST:PORT
"""

import os
import sys
import time

os.environ["MAVLINK20"] = "1"

from pymavlink import mavutil  # noqa: E402  (the variable above chooses the version)

WAIT_S = 40.0
link = mavutil.mavlink_connection(sys.argv[1], source_system=255, source_component=190, retries=20)


def heard(kind, what, accept=lambda m: True, again=None):
    end, again_at = time.monotonic() + WAIT_S, 0.0
    while time.monotonic() < end:
        if again and time.monotonic() >= again_at:
            again_at = time.monotonic() + 1.0
            again()
        message = link.recv_match(type=kind, blocking=True, timeout=0.1)
        if message is not None and accept(message):
            return message
    print("FAILED: %s: not heard in %.0f s" % (what, WAIT_S))
    sys.exit(1)


first = heard("HEARTBEAT", "the autopilot", lambda m: m.get_srcComponent() == 1)
vehicle = first.get_srcSystem()
heard("HEARTBEAT", "the companion", lambda m: m.get_srcComponent() == 191 and m.type == 18)
heard("GLOBAL_POSITION_INT", "telemetry", lambda m: m.relative_alt > 3_000)
link.mav.heartbeat_send(6, 8, 0, 0, 0)

seen, count = set(), None
link.mav.param_request_list_send(vehicle, 1)
while count is None or len(seen) < count:
    value = heard("PARAM_VALUE", "a parameter of the list", lambda m: m.param_index != 65535)
    count = value.param_count
    seen.add(value.param_index)
print("parameters: %d" % count)

items = heard("MISSION_COUNT", "the mission", again=lambda: link.mav.mission_request_list_send(vehicle, 1))
for seq in range(items.count):
    heard("MISSION_ITEM_INT", "item %d" % seq, lambda m, seq=seq: m.seq == seq,
          lambda seq=seq: link.mav.mission_request_int_send(vehicle, 1, seq))
link.mav.mission_ack_send(vehicle, 1, 0)
print("mission: %d items" % items.count)

link.mav.request_data_stream_send(vehicle, 1, 0, 1, 0)
link.mav.request_data_stream_send(vehicle, 1, 6, 1, 1)
link.mav.command_long_send(vehicle, 1, 511, 0, 33, -1, 0, 0, 0, 0, 0)
link.mav.param_set_send(vehicle, 1, b"SR2_POSITION", 0.0, 9)
heard("STATUSTEXT", "why the rate is refused", lambda m: "SR2_POSITION" in m.text)
print("READ", flush=True)
sys.stdin.readline()
heard("HEARTBEAT", "LOITER", lambda m: m.get_srcComponent() == 1 and m.custom_mode == 5,
      lambda: link.mav.set_mode_send(vehicle, 1, 5))
print("TAKEN", flush=True)
