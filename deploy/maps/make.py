"""Makes valencia.pmtiles, the map of the ground that the demo opens: land and sea around where `wingbeat bench fleet` flies.

    pip install pmtiles==3.8.1 mapbox-vector-tile==2.2.0 shapely==2.1.2
    npm pack @geo-maps/earth-lands-10m@0.6.0     # the coasts of OpenStreetMap, simplified
    tar xzf geo-maps-earth-lands-10m-0.6.0.tgz package/map.geo.json
    python3 make.py package/map.geo.json

The same file comes out every time. What it is made of is under the Open Database License (README.md), and it says so itself.
"""

import gzip
import json
import math
import sys

import mapbox_vector_tile
import numpy
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer
from shapely import MultiPolygon, Polygon, box, clip_by_rect, transform
from shapely.ops import unary_union

LATITUDE, LONGITUDE = 39.4824, -0.3464
WEST, SOUTH, EAST, NORTH = -0.70, 39.25, 0.00, 39.70
MIN_ZOOM, MAX_ZOOM = 9, 14
EXTENT = 4096
# Beyond a tile's edge, so that no seam shows.
BUFFER = 64


def across(longitude, zoom):
    return (longitude + 180) / 360 * (1 << zoom)


def down(latitude, zoom):
    return (1 - numpy.arcsinh(numpy.tan(numpy.radians(latitude))) / math.pi) / 2 * (1 << zoom)


def land_of(path):
    """The rings that touch the area, clipped to a little more than it."""
    with open(path) as file:
        [whole] = json.load(file)["geometries"]
    area = box(WEST - 0.1, SOUTH - 0.1, EAST + 0.1, NORTH + 0.1)
    found = []
    for outer, *_ in whole["coordinates"]:
        longitudes, latitudes = [x for x, _ in outer], [y for _, y in outer]
        if max(longitudes) < area.bounds[0] or min(longitudes) > area.bounds[2]:
            continue
        if max(latitudes) < area.bounds[1] or min(latitudes) > area.bounds[3]:
            continue
        # Eurasia is one ring: cut first, then mended. Holes are left out: a coast has none here, and the package has some where its makers joined tiles.
        found.append(clip_by_rect(Polygon(outer), *area.bounds).buffer(0))
    return unary_union(found)


def polygons(shape):
    """The areas of a shape: what is left of a touching edge is none."""
    parts = getattr(shape, "geoms", [shape])
    return MultiPolygon([part for part in parts if isinstance(part, Polygon) and part.area > 0])


def tile(land, zoom, x, y):
    to_tile = lambda at: numpy.column_stack([across(at[:, 0], zoom) - x, down(at[:, 1], zoom) - y]) * EXTENT
    square = box(-BUFFER, -BUFFER, EXTENT + BUFFER, EXTENT + BUFFER)
    here = polygons(transform(land, to_tile).buffer(0).simplify(1).buffer(0).intersection(square))
    sea = polygons(square.difference(here))
    layers = []
    for name, kind, shape in (("earth", "earth", here), ("water", "ocean", sea)):
        if not shape.is_empty:
            layers.append({"name": name, "features": [{"geometry": shape, "properties": {"kind": kind}}]})
    options = {"extents": EXTENT, "y_coord_down": True}
    return gzip.compress(mapbox_vector_tile.encode(layers, default_options=options), mtime=0)


def main():
    land = land_of(sys.argv[1])
    tiles = {}
    for zoom in range(MIN_ZOOM, MAX_ZOOM + 1):
        for x in range(int(across(WEST, zoom)), int(across(EAST, zoom)) + 1):
            for y in range(int(down(NORTH, zoom)), int(down(SOUTH, zoom)) + 1):
                tiles[zxy_to_tileid(zoom, x, y)] = tile(land, zoom, x, y)
    with open("valencia.pmtiles", "wb") as file:
        writer = Writer(file)
        for number in sorted(tiles):
            writer.write_tile(number, tiles[number])
        e7 = lambda degrees: round(degrees * 1e7)
        writer.finalize(
            {
                "tile_type": TileType.MVT,
                "tile_compression": Compression.GZIP,
                "min_zoom": MIN_ZOOM,
                "max_zoom": MAX_ZOOM,
                "min_lon_e7": e7(WEST),
                "min_lat_e7": e7(SOUTH),
                "max_lon_e7": e7(EAST),
                "max_lat_e7": e7(NORTH),
                "center_zoom": MAX_ZOOM,
                "center_lon_e7": e7(LONGITUDE),
                "center_lat_e7": e7(LATITUDE),
            },
            {
                "name": "Valencia: land and sea",
                "attribution": '<a href="https://www.openstreetmap.org/copyright">© OpenStreetMap contributors</a>',
                "license": "ODbL-1.0",
                "source": "@geo-maps/earth-lands-10m 0.6.0",
                "vector_layers": [{"id": name, "fields": {"kind": "String"}} for name in ("earth", "water")],
            },
        )


main()
