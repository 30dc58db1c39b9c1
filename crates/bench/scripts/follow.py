"""High-level logic of one aircraft: takes off once another has, flies 60 m east of where that broadcasts that it is, and lands when it
comes down or is silent.

Usage: follow.py tcp:HOST:PORT RADIO
"""

import math
import socket
import struct
import sys
import time

from copter import Copter

EAST_M = 60.0
# ArduCopter begins a leg anew with each target.
PERIOD_S = 1.0
HEIGHT_M = 15.0
LOW_M = 5.0
SILENCE_S = 10.0

craft = Copter(sys.argv[1])
radio = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
radio.bind(("", int(sys.argv[2])))
radio.setblocking(False)
leader = {"place": None, "heard_at": time.time(), "count": 0}


def listen():
    while True:
        try:
            datagram, _ = radio.recvfrom(100)
        except BlockingIOError:
            return
        leader["place"] = struct.unpack("<iif", datagram)
        leader["heard_at"] = time.time()
        leader["count"] += 1


craft.meanwhile = listen
craft.until("the leader is up", lambda: leader["place"] is not None and leader["place"][2] > LOW_M)
craft.take_off(HEIGHT_M)


def is_over():
    return leader["place"][2] < LOW_M or time.time() - leader["heard_at"] > SILENCE_S


go_at = 0.0
while not is_over():
    craft.receive()
    if time.time() < go_at:
        continue
    go_at = time.time() + PERIOD_S
    latitude_e7, longitude_e7, height_m = leader["place"]
    metre_e7 = 1e7 / (111_319.5 * math.cos(math.radians(latitude_e7 * 1e-7)))
    craft.go_to(latitude_e7, longitude_e7 + int(EAST_M * metre_e7), max(height_m, LOW_M))
print("%7.2f s: followed, %d datagrams" % (time.time() - craft.began, leader["count"]))
craft.land()
