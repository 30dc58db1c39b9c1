"""Makes MBTiles around where `wingbeat bench fleet` flies, of what the small archives beside this file have: Python alone, without a package.

    python3 mbtiles.py pictures FILE.mbtiles
    python3 mbtiles.py vectors FILE.mbtiles
"""

import gzip
import math
import sqlite3
import struct
import sys
import zlib

LATITUDE, LONGITUDE = 39.4824, -0.3464
MIN_ZOOM, MAX_ZOOM = 12, 15
GREEN = bytes((96, 160, 80))


def tile_of(zoom):
    count = 1 << zoom
    north = math.asinh(math.tan(math.radians(LATITUDE)))
    return int((LONGITUDE + 180) / 360 * count), int((1 - north / math.pi) / 2 * count)


def png(colour):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + colour * 256 for _ in range(256))
    head = struct.pack(">IIBBBBB", 256, 256, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def number(value):
    """A varint of Protocol Buffers."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes((value,)))


def field(key, content):
    """A field with a length."""
    return number(key << 3 | 2) + number(len(content)) + content


def polygon(corners):
    """MoveTo, LineTo, ClosePath, by zigzag differences (https://github.com/mapbox/vector-tile-spec/tree/master/2.1, section 4.3)."""
    at, words = (0, 0), []
    for index, corner in enumerate(corners):
        if index < 2:
            words.append(9 if index == 0 else (len(corners) - 1) << 3 | 2)
        words += [(step << 1) ^ (step >> 31) for step in (corner[0] - at[0], corner[1] - at[1])]
        at = corner
    return b"".join(number(word) for word in words + [15])


def layer(name, kind, corners):
    feature = field(2, number(0) + number(0)) + number(3 << 3) + number(3) + field(4, polygon(corners))
    version_and_extent = number(15 << 3) + number(2), number(5 << 3) + number(4096)
    value = field(4, field(1, kind.encode()))
    return field(3, version_and_extent[0] + field(1, name.encode()) + field(2, feature) + field(3, b"kind") + value + version_and_extent[1])


def square(height):
    return [(0, 0), (4096, 0), (4096, height), (0, height)]


def main(kind, path):
    vectors = layer("earth", "earth", square(4096)) + layer("water", "lake", square(1400))
    form, content = ("png", png(GREEN)) if kind == "pictures" else ("pbf", gzip.compress(vectors, mtime=0))
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE metadata (name text, value text)")
    file.execute("CREATE TABLE tiles (zoom_level integer, tile_column integer, tile_row integer, tile_data blob)")
    file.execute("CREATE UNIQUE INDEX tile_index ON tiles (zoom_level, tile_column, tile_row)")
    bounds = ",".join(str(edge) for edge in (LONGITUDE - 0.01, LATITUDE - 0.01, LONGITUDE + 0.01, LATITUDE + 0.01))
    stated = {
        "name": "test",
        "format": form,
        "bounds": bounds,
        "minzoom": MIN_ZOOM,
        "maxzoom": MAX_ZOOM,
        "attribution": "made by mbtiles.py",
    }
    file.executemany("INSERT INTO metadata VALUES (?, ?)", stated.items())
    for zoom in range(MIN_ZOOM, MAX_ZOOM + 1):
        x, y = tile_of(zoom)
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                from_south = (1 << zoom) - 1 - (y + dy)
                file.execute("INSERT INTO tiles VALUES (?, ?, ?, ?)", (zoom, x + dx, from_south, content))
    file.commit()
    file.close()


main(*sys.argv[1:])
