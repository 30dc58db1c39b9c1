"""An ArduCopter by MAVLink, for the scripts beside this one: what they ask of it, and how long they wait for it."""

import sys
import time

from pymavlink import mavutil

LIMIT_S = 90.0
POSITION_ALONE = 0b110111111000
mavlink = mavutil.mavlink


class Copter:
    def __init__(self, address="tcp:127.0.0.1:5760"):
        self.link = mavutil.mavlink_connection(address)
        self.began = time.time()
        self.beat_at = 0.0
        # Called while something is waited for.
        self.meanwhile = lambda: None
        self.link.wait_heartbeat()
        self.ids = (self.link.target_system, self.link.target_component)
        self.link.mav.request_data_stream_send(*self.ids, mavlink.MAV_DATA_STREAM_ALL, 5, 1)

    def last(self, name):
        return self.link.messages.get(name)

    def receive(self):
        """For a fifth of a second at most; a heartbeat each second, without which ArduCopter returns."""
        if time.time() >= self.beat_at:
            self.beat_at = time.time() + 1.0
            self.link.mav.heartbeat_send(mavlink.MAV_TYPE_GCS, mavlink.MAV_AUTOPILOT_INVALID, 0, 0, 0)
        self.link.recv_match(blocking=True, timeout=0.2)
        self.meanwhile()

    def until(self, what, done, ask=lambda: None):
        """Asks every two seconds until it is so."""
        end, ask_at = time.time() + LIMIT_S, 0.0
        while not done():
            if time.time() > end:
                sys.exit("%s: not within %.0f s" % (what, LIMIT_S))
            if time.time() >= ask_at:
                ask_at = time.time() + 2.0
                ask()
            self.receive()
        print("%7.2f s: %s" % (time.time() - self.began, what))

    def command(self, number, *values):
        values = list(values) + [0.0] * (7 - len(values))
        self.link.mav.command_long_send(*self.ids, number, 0, *values)

    def mode(self, name):
        number = self.link.mode_mapping()[name]
        flag = mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
        self.until(
            name,
            lambda: self.link.flightmode == name,
            lambda: self.link.mav.set_mode_send(self.ids[0], flag, number),
        )

    def place(self):
        """Latitude and longitude, 1e-7 degree, and metres above home; None before it has one."""
        place = self.last("GLOBAL_POSITION_INT")
        return place and (place.lat, place.lon, place.relative_alt / 1000.0)

    def take_off(self, height_m):
        fix = lambda: self.last("GPS_RAW_INT") is not None and self.last("GPS_RAW_INT").fix_type >= 3  # noqa: E731
        self.until("has a position", lambda: fix() and self.place() is not None)
        self.mode("GUIDED")
        self.until("armed", self.link.motors_armed, lambda: self.command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1))
        self.until(
            "%.0f m high" % height_m,
            lambda: self.place()[2] > height_m - 0.5,
            lambda: self.command(mavlink.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, height_m),
        )

    def go_to_local(self, north_m, east_m, height_m):
        """From home, where ArduCopter's local frame has its origin."""
        frame, rest = mavlink.MAV_FRAME_LOCAL_NED, [0] * 8
        self.link.mav.set_position_target_local_ned_send(
            0, *self.ids, frame, POSITION_ALONE, north_m, east_m, -height_m, *rest
        )

    def go_to(self, latitude_e7, longitude_e7, height_m):
        frame, rest = mavlink.MAV_FRAME_GLOBAL_RELATIVE_ALT_INT, [0] * 8
        self.link.mav.set_position_target_global_int_send(
            0, *self.ids, frame, POSITION_ALONE, latitude_e7, longitude_e7, height_m, *rest
        )

    def land(self):
        self.mode("LAND")
        self.until("on the ground", lambda: not self.link.motors_armed())
