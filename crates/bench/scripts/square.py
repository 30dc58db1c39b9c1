"""High-level logic of one aircraft, as for any ArduCopter: takes off, flies a square in GUIDED, stands at each corner, lands.

Usage: square.py [tcp:HOST:PORT]
"""

import random
import sys
import time

from pymavlink import mavutil

SIDE_M = 40.0
HEIGHT_M = 15.0
# Shorter than ArduCopter waits for a heartbeat (5 s).
CORNER_S = 2.0
LIMIT_S = 90.0

link = mavutil.mavlink_connection(sys.argv[1] if len(sys.argv) > 1 else "tcp:127.0.0.1:5760")
target = mavutil.mavlink
began = time.time()


def until(what, done):
    """Receives until `done()`, and sends a heartbeat each second."""
    end, beat = time.time() + LIMIT_S, 0.0
    while not done():
        if time.time() > end:
            sys.exit("%s: not within %.0f s" % (what, LIMIT_S))
        if time.time() >= beat:
            beat = time.time() + 1.0
            link.mav.heartbeat_send(target.MAV_TYPE_GCS, target.MAV_AUTOPILOT_INVALID, 0, 0, 0)
        link.recv_match(blocking=True, timeout=0.2)
    print("%7.2f s: %s" % (time.time() - began, what))


def repeated(what, ask, done):
    """The same, and asks every two seconds until it is so."""
    asked = [0.0]

    def asks():
        if time.time() - asked[0] >= 2.0:
            asked[0] = time.time()
            ask()
        return done()

    until(what, asks)


def last(name):
    return link.messages.get(name)


def command(number, *values):
    values = list(values) + [0.0] * (7 - len(values))
    link.mav.command_long_send(link.target_system, link.target_component, number, 0, *values)


def height_m():
    place = last("GLOBAL_POSITION_INT")
    return place.relative_alt / 1000.0 if place else 0.0


def mode(name):
    number = link.mode_mapping()[name]
    ask = lambda: link.mav.set_mode_send(link.target_system, target.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED, number)  # noqa: E731
    repeated(name, ask, lambda: link.flightmode == name)


def fly_to(north_m, east_m):
    """Metres from home, where ArduCopter's local frame has its origin."""

    def ask():
        link.mav.set_position_target_local_ned_send(
            0,
            link.target_system,
            link.target_component,
            target.MAV_FRAME_LOCAL_NED,
            0b110111111000,
            north_m,
            east_m,
            -HEIGHT_M,
            *[0] * 8,
        )

    def is_there():
        place = last("LOCAL_POSITION_NED")
        return place is not None and abs(place.x - north_m) < 1.5 and abs(place.y - east_m) < 1.5

    repeated("at %.0f m north, %.0f m east" % (north_m, east_m), ask, is_there)
    time.sleep(CORNER_S + random.random())


link.wait_heartbeat()
link.mav.request_data_stream_send(link.target_system, link.target_component, target.MAV_DATA_STREAM_ALL, 5, 1)
until("has a position", lambda: last("GPS_RAW_INT") is not None and last("GPS_RAW_INT").fix_type >= 3)
mode("GUIDED")
repeated("armed", lambda: command(target.MAV_CMD_COMPONENT_ARM_DISARM, 1), link.motors_armed)
take_off = lambda: command(target.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, HEIGHT_M)  # noqa: E731
repeated("%.0f m high" % HEIGHT_M, take_off, lambda: height_m() > HEIGHT_M - 0.5)
for corner in [(SIDE_M, 0.0), (SIDE_M, SIDE_M), (0.0, SIDE_M), (0.0, 0.0)]:
    fly_to(*corner)
mode("LAND")
until("on the ground", lambda: not link.motors_armed())
