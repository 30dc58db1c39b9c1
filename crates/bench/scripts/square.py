"""High-level logic of one aircraft: takes off, flies a square in GUIDED, stands at each corner, lands. Where it has a radio it broadcasts
where it is, five times a second.

Usage: square.py [tcp:HOST:PORT [RADIO]]
"""

import random
import socket
import struct
import sys
import time

from copter import Copter

SIDE_M = 40.0
HEIGHT_M = 15.0
# Shorter than ArduCopter waits for a heartbeat (5 s).
CORNER_S = 2.0
PERIOD_S = 0.2

craft = Copter(*sys.argv[1:2])
if len(sys.argv) > 2:
    radio, port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), int(sys.argv[2])
    radio.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    send_at = [0.0]

    def broadcast():
        if time.time() >= send_at[0] and craft.place():
            send_at[0] = time.time() + PERIOD_S
            radio.sendto(struct.pack("<iif", *craft.place()), ("255.255.255.255", port))

    craft.meanwhile = broadcast

craft.take_off(HEIGHT_M)
for north_m, east_m in [(SIDE_M, 0.0), (SIDE_M, SIDE_M), (0.0, SIDE_M), (0.0, 0.0)]:

    def is_there(north_m=north_m, east_m=east_m):
        place = craft.last("LOCAL_POSITION_NED")
        return place is not None and abs(place.x - north_m) < 1.5 and abs(place.y - east_m) < 1.5

    def ask(north_m=north_m, east_m=east_m):
        craft.go_to_local(north_m, east_m, HEIGHT_M)

    craft.until("at %.0f m north, %.0f m east" % (north_m, east_m), is_there, ask)
    time.sleep(CORNER_S + random.random())
craft.land()
