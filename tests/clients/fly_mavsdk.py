"""Drives one flight controller with MAVSDK as a script does: what it is, its files, logs, fence and rally points, and with 4.x a
flight to a place.

Usage: fly_mavsdk.py tcpout://HOST:PORT VERSION

Today's MAVSDK sets modes by a command that 3.5.7 does not know, so with 3.5.7 it only reads and uploads.
"""

import sys
import time

from mavsdk import ComponentType, Configuration, Mavsdk
from mavsdk.plugins.action import Action
from mavsdk.plugins.ftp import Ftp
from mavsdk.plugins.info import Info
from mavsdk.plugins.log_files import LogFiles
from mavsdk.plugins.mission_raw import MissionItem, MissionRaw
from mavsdk.plugins.param import Param
from mavsdk.plugins.telemetry import Telemetry

WAIT_S = 60.0
# An answer, refusal or none, comes before any client's own patience ends.
ANSWER_S = 10.0
address, version = sys.argv[1:3]
is_new = not version.startswith("3.")


def fail(text):
    print("FAILED: " + text)
    sys.exit(1)


def until(what, done, wait_s=WAIT_S):
    end = time.monotonic() + wait_s
    while not done():
        if time.monotonic() > end:
            fail("%s: not in %.0f s" % (what, wait_s))
        time.sleep(0.05)


def timed(what, call):
    """What a call gives, or the refusal that it raises; it has to come soon."""
    began = time.monotonic()
    try:
        result = call()
    except Exception as refused:
        result = refused
    elapsed_s = time.monotonic() - began
    print("%s: %.1f s: %s" % (what, elapsed_s, result))
    if elapsed_s > ANSWER_S:
        fail("%s: took %.1f s, expected at most %.0f" % (what, elapsed_s, ANSWER_S))
    return result


def item(seq, command, lat, lon, z, p1=0.0, kind=0):
    return MissionItem(seq, 3, command, 1 if seq == 0 else 0, 1, p1, 0.0, 0.0, 0.0, int(lat * 1e7), int(lon * 1e7), z, kind)


mavsdk = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
print(mavsdk.add_any_connection(address))
system = mavsdk.first_autopilot(timeout_s=40.0)
if system is None:
    fail("no autopilot in 40 s")
telemetry, missions = Telemetry(system), MissionRaw(system)
# Nothing streams until it is asked for: 4.x by the message, 3.5.7 by the group.
if is_new:
    telemetry.set_rate_position(4.0)
else:
    Param(system).set_param_int("SR0_POSITION", 4)
until("a position", lambda: telemetry.position().latitude_deg > 1.0)
here = telemetry.position()
lat, lon = here.latitude_deg, here.longitude_deg

found = timed("version", Info(system).get_version)
if not version.startswith("%d.%d." % (found.flight_sw_major, found.flight_sw_minor)):
    fail("version: found %s, expected %s" % (found, version))
parameters = timed("parameters", Param(system).get_all_params)
if len(parameters.int_params) + len(parameters.float_params) < 100:
    fail("parameters: too few")

# 3.5.7 has no files, and leaves the question unanswered. 4.6.2 refuses today's MAVSDK the listing, which is asked for with times.
if is_new:
    timed("files", lambda: Ftp(system).list_directory("/"))
    same = timed("checksum", lambda: Ftp(system).are_files_identical(__file__, "@PARAM/param.pck"))
    if same is not False:
        fail("checksum: found %s, expected two files that differ" % same)
timed("logs", LogFiles(system).get_entries)

route = [item(0, 16, lat, lon, 0.0), item(1, 22, lat, lon, 10.0), item(2, 16, lat + 3e-4, lon, 12.0)]
timed("mission up", lambda: missions.upload_mission(route))
back = timed("mission down", missions.download_mission)
if len(back) != len(route) or [b.command for b in back[1:]] != [22, 16]:
    fail("mission: found %s" % back)
if is_new:
    corners = [(1e-3, 0.0), (1e-3, 1e-3), (-1e-3, 1e-3)]
    fence = [item(i, 5001, lat + n, lon + e, 0.0, 3.0, 1) for i, (n, e) in enumerate(corners)]
    timed("fence up", lambda: missions.upload_geofence(fence))
    back = timed("fence down", missions.download_geofence)
    if [(b.command, b.param1, b.x) for b in back] != [(f.command, 3.0, f.x) for f in fence]:
        fail("fence: found %s" % back)
    rally = [item(0, 5100, lat + 2e-4, lon, 15.0, 0.0, 2)]
    timed("rally up", lambda: missions.upload_rally_points(rally))
    back = timed("rally down", missions.download_rallypoints)
    if [(b.command, b.x) for b in back] != [(5100, rally[0].x)]:
        fail("rally: found %s" % back)

if is_new:
    # What flies below is not to be inside a fence or on its way to a rally point.
    timed("no fence", lambda: missions.upload_geofence([]))
    action = Action(system)
    timed("height", lambda: action.set_takeoff_altitude(10.0))
    timed("arm", action.arm)
    timed("take-off", action.takeoff)
    until("9 m", lambda: telemetry.position().relative_altitude_m > 9.0)
    above = telemetry.position().absolute_altitude_m
    timed("go to", lambda: action.goto_location(lat + 3e-4, lon, above, 0.0))
    until("the place", lambda: abs(telemetry.position().latitude_deg - lat - 3e-4) < 2e-5)
    timed("return", action.return_to_launch)
    until("landed", lambda: not telemetry.armed(), 180.0)
print("done")
