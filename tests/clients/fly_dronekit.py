"""Drives one flight controller with dronekit as a script does: connect and wait until it is ready, parameters, home, a mission
down and up, and a flight.

Usage: fly_dronekit.py tcp:HOST:PORT VERSION

With 3.5.7 modes are set by SET_MODE: today's pymavlink below dronekit sets them by a command that it does not know.
"""

import collections
import collections.abc
import sys
import time

# dronekit is older than Python 3.10, which has this name in collections.abc alone.
collections.MutableMapping = collections.abc.MutableMapping

from dronekit import Command, LocationGlobalRelative, VehicleMode, connect  # noqa: E402

address, version = sys.argv[1:3]
is_new = not version.startswith("3.")


def fail(text):
    print("FAILED: " + text)
    sys.exit(1)


def until(what, done, wait_s=90.0):
    end = time.monotonic() + wait_s
    while not done():
        if time.monotonic() > end:
            fail("%s: not in %.0f s" % (what, wait_s))
        time.sleep(0.05)


vehicle = connect(address, wait_ready=True, timeout=60, heartbeat_timeout=60)
print("parameters: %d" % len(vehicle.parameters))
# Of 3.5.7 dronekit does not find it out. Of others it does not wait for it.
if is_new:
    until("version %s" % version, lambda: str(vehicle.version).endswith(version))


def mode(name):
    if is_new:
        vehicle.mode = VehicleMode(name)
    else:
        vehicle._master.mav.set_mode_send(1, 1, vehicle._master.mode_mapping()[name])
    until("mode " + name, lambda: vehicle.mode.name == name)


vehicle.parameters["RTL_ALT"] = 1200
vehicle.parameters["FS_GCS_ENABLE"] = 0
until("RTL_ALT", lambda: vehicle.parameters["RTL_ALT"] == 1200)
until("armable", lambda: vehicle.is_armable)
commands = vehicle.commands
commands.download()
commands.wait_ready(timeout=20)
until("home", lambda: vehicle.home_location is not None)
home = vehicle.home_location
print("home: %s, commands: %d" % (home, commands.count))
commands.clear()
commands.add(Command(0, 0, 0, 3, 22, 0, 0, 0, 0, 0, 0, 0, 0, 10))
for north, east in [(3e-4, 0.0), (3e-4, 3e-4)]:
    commands.add(Command(0, 0, 0, 3, 16, 0, 0, 0, 0, 0, 0, home.lat + north, home.lon + east, 12))
commands.upload(timeout=20)
commands.download()
commands.wait_ready(timeout=20)
if [int(c.command) for c in commands] != [22, 16, 16]:
    fail("mission: found %s" % [c.command for c in commands])

mode("GUIDED")
vehicle.armed = True
until("armed", lambda: vehicle.armed)
vehicle.simple_takeoff(10)
until("9 m", lambda: vehicle.location.global_relative_frame.alt > 9.0)
vehicle.simple_goto(LocationGlobalRelative(home.lat + 2e-4, home.lon, 10), groundspeed=5)
until("the place", lambda: abs(vehicle.location.global_relative_frame.lat - home.lat - 2e-4) < 2e-5)
mode("AUTO")
until("waypoint 3", lambda: vehicle.commands.next == 3)
mode("RTL")
until("landed", lambda: not vehicle.armed, 180.0)
vehicle.close()
print("done")
