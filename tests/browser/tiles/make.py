"""Makes the two small maps of the ground that tiles.test.mjs opens, with the writer of the PMTiles project:

    pip install pmtiles==3.8.1 mapbox-vector-tile==2.2.0
    python3 make.py

They show no real place: a square of one colour, or of land and water with a road, around where `wingbeat bench fleet` flies.
"""

import math
import struct
import zlib

import mapbox_vector_tile
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer

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


def vectors():
    def layer(name, *features):
        return {"name": name, "features": [{"geometry": shape, "properties": properties} for shape, properties in features]}

    earth = ("POLYGON ((0 0, 4096 0, 4096 4096, 0 4096, 0 0))", {"kind": "earth"})
    lake = ("POLYGON ((0 0, 4096 0, 4096 1400, 0 1400, 0 0))", {"kind": "lake"})
    road = ("LINESTRING (0 2600, 4096 2600)", {"kind": "major_road", "kind_detail": "primary"})
    return mapbox_vector_tile.encode([layer("earth", earth), layer("water", lake), layer("roads", road)])


def write(path, tile_type, compression, content, metadata):
    with open(path, "wb") as file:
        writer = Writer(file)
        tiles = {}
        for zoom in range(MIN_ZOOM, MAX_ZOOM + 1):
            x, y = tile_of(zoom)
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    tiles[zxy_to_tileid(zoom, x + dx, y + dy)] = content
        for number in sorted(tiles):
            writer.write_tile(number, tiles[number])
        edge = lambda degrees: int(degrees * 1e7)
        writer.finalize(
            {
                "tile_type": tile_type,
                "tile_compression": compression,
                "min_zoom": MIN_ZOOM,
                "max_zoom": MAX_ZOOM,
                "min_lon_e7": edge(LONGITUDE - 0.01),
                "min_lat_e7": edge(LATITUDE - 0.01),
                "max_lon_e7": edge(LONGITUDE + 0.01),
                "max_lat_e7": edge(LATITUDE + 0.01),
                "center_zoom": MAX_ZOOM,
                "center_lon_e7": edge(LONGITUDE),
                "center_lat_e7": edge(LATITUDE),
            },
            metadata,
        )


NAMED = {"name": "test", "attribution": "made by make.py"}
write("pictures.pmtiles", TileType.PNG, Compression.NONE, png(GREEN), NAMED)
layers = [{"id": name, "fields": {"kind": "String"}} for name in ("earth", "water", "roads")]
write("vectors.pmtiles", TileType.MVT, Compression.GZIP, __import__("gzip").compress(vectors(), mtime=0), NAMED | {"vector_layers": layers})
