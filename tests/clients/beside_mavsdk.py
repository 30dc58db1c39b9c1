"""A ground station beside Wingbeat, with MAVSDK: reads, waits for a line, takes over by returning.

Usage: beside_mavsdk.py tcpout://HOST:PORT
"""

import sys
import time

from mavsdk import ComponentType, Configuration, Mavsdk
from mavsdk.plugins.action import Action
from mavsdk.plugins.mission_raw import MissionRaw
from mavsdk.plugins.param import Param
from mavsdk.plugins.telemetry import Telemetry

mavsdk = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
print(mavsdk.add_any_connection(sys.argv[1]))
system = mavsdk.first_autopilot(timeout_s=40.0)
if system is None:
    print("FAILED: no autopilot in 40 s")
    sys.exit(1)

telemetry = Telemetry(system)
end = time.monotonic() + 40.0
while not telemetry.position().relative_altitude_m > 3.0:
    if time.monotonic() > end:
        print("FAILED: no telemetry in 40 s")
        sys.exit(1)
    time.sleep(0.1)
print("telemetry: %.1f m" % telemetry.position().relative_altitude_m)
parameters = Param(system).get_all_params()
count = len(parameters.int_params) + len(parameters.float_params)
print("parameters: %d" % count)
if count < 20:
    print("FAILED: too few")
    sys.exit(1)
print("mission:", MissionRaw(system).download_mission())
try:
    telemetry.set_rate_position(1.0)
except Exception as refused:  # 3.5.7 does not know the command, which is its answer to everybody
    print("rate:", refused)
print("READ", flush=True)
sys.stdin.readline()
try:
    print("return:", Action(system).return_to_launch())
except Exception as refused:  # whether this autopilot takes it or not: it was commanded
    print("return:", refused)
print("TAKEN", flush=True)
