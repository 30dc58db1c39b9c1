"""A radio for the scripts beside this one: each aircraft broadcasts where it is, and hears where others are.

All are in one frame, east and north in metres, of which each knows where it started.
"""

import math
import random
import socket
import struct
import time

PERIOD_S = 0.2
# Those that begin together would send together, and their frames collide.
JITTER_S = 0.02
# Those that are silent for longer are not reckoned with.
SILENCE_S = 2.0
BYTES_MOST = 1000
# East, north, and their rates.
STATE = struct.Struct("<4f")
VELOCITY_ALONE = 0b110111000111


class Swarm:
    def __init__(self, craft, port, east_m, north_m):
        self.craft, self.port, self.start = craft, int(port), (float(east_m), float(north_m))
        self.radio = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.radio.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self.radio.bind(("", self.port))
        self.radio.setblocking(False)
        self.send_at = 0.0
        # What is said beside the state.
        self.said = b""
        self.heard = {}
        self.count = 0
        craft.meanwhile = self.turn

    def here(self):
        """East, north, and their rates; None before they are known."""
        place = self.craft.last("LOCAL_POSITION_NED")
        return place and (self.start[0] + place.y, self.start[1] + place.x, place.vy, place.vx)

    def turn(self):
        while True:
            try:
                datagram, (address, _) = self.radio.recvfrom(BYTES_MOST)
            except BlockingIOError:
                break
            self.count += 1
            self.heard[address] = (time.time(), STATE.unpack_from(datagram), datagram[STATE.size :])
        if self.here() and time.time() >= self.send_at:
            self.send_at = time.time() + PERIOD_S
            time.sleep(JITTER_S * random.random())
            self.radio.sendto(STATE.pack(*self.here()) + self.said, ("255.255.255.255", self.port))

    def others(self):
        """The states of those that were heard lately, with what they said."""
        now = time.time()
        return [(state, said) for at, state, said in self.heard.values() if now - at < SILENCE_S]

    def fly(self, east_m_s, north_m_s, height_m):
        """With this velocity over the ground, at this height above where it started."""
        low_m = height_m - self.craft.place()[2]
        down_m_s = -max(-1.0, min(1.0, 0.5 * low_m))
        link, mavlink = self.craft.link, self.craft.link.mav
        frame = 1  # MAV_FRAME_LOCAL_NED
        velocity = (north_m_s, east_m_s, down_m_s)
        mavlink.set_position_target_local_ned_send(
            0, link.target_system, link.target_component, frame, VELOCITY_ALONE, 0, 0, 0, *velocity, *[0] * 5
        )


def distance_m(a, b):
    return math.hypot(a[0] - b[0], a[1] - b[1])
