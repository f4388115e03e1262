"""Makes the trace files of a large run from those of a small one, to measure and test how they are read.

Each file is one of the given traces under another rank: header, name and times are those of a process of its own, its
findings happened as often as in no other, and process groups of all ranks are of all of the large run. Of a file only what its trace uses takes up space on the disk.
"""

import argparse
import os
import pathlib
import struct
import sys

HEADER = 4096
SECTIONS = 128  # six of them: u32 number, u32 bytes an entry, u64 offset, u64 size
USED = {1: (272, "Q", 1), 2: (288, "I", 4), 3: (292, "I", 48), 4: (300, "I", 16), 5: (308, "I", 4096), 6: (328, "Q", 1)}
EVENTS = 6
SYNC = 0x5E5AD0DE
MEETING, TRAFFIC = 2, 5
CHANGING = {MEETING: 16, TRAFFIC: 24}  # bytes of a payload that its sum leaves out; a time follows
GROUP = 21  # "size" is its third number, and the last one how many ranks it lists: none where they are all there are
REPEATS = {MEETING: 0, TRAFFIC: 8}  # where such a payload counts how often it happened again


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


class Template:
    """A trace as the parts of it that are used, and where its findings are."""

    def __init__(self, path):
        data = path.read_bytes()
        if data[:8] != b"DEVSAN\r\n":
            raise ValueError(f"{path} is no trace")
        self.size = len(data)
        self.header = data[:HEADER]
        self.rank = struct.unpack_from("<i", data, 32)[0]
        self.ranks = struct.unpack_from("<i", data, 40)[0]
        self.start_ns = struct.unpack_from("<q", data, 48)[0]
        self.parts = []
        for index in range(6):
            number, _, offset, size = struct.unpack_from("<IIQQ", data, SECTIONS + 24 * index)
            at, code, entry = USED[number]
            used = min(size, struct.unpack_from("<" + code, data, at)[0] * entry)
            self.parts.append((offset, bytearray(data[offset:offset + used]), number == EVENTS))

    def records(self, events, kinds):
        """Of each record of these kinds, where it begins and ends, and its kind."""
        at = 0
        while at + 16 <= len(events):
            sync, size, kind = struct.unpack_from("<IIH", events, at)
            if sync != SYNC or size < 16:
                return
            if kind in kinds:
                yield at, at + size, kind
            at += size

    def write(self, path, rank, ranks, per_node, later_ns):
        """The trace of another rank, that many nanoseconds later."""
        header = bytearray(self.header)
        node = rank // per_node
        struct.pack_into("<II", header, 24, 10_000 + rank, 9_000 + node)
        struct.pack_into("<iii", header, 32, rank, rank % per_node, ranks)
        struct.pack_into("<q", header, 48, self.start_ns + later_ns)
        struct.pack_into("<II", header, 948, node + 1, 1)  # the first attempt
        header[64:128] = f"node-{node:04}".encode().ljust(64, b"\0")
        ended = struct.unpack_from("<q", header, 936)[0]
        if ended:
            struct.pack_into("<q", header, 936, ended + later_ns)
        with open(path, "xb") as file:
            file.truncate(self.size)
            file.write(header)
            for offset, part, is_events in self.parts:
                file.seek(offset)
                file.write(self.events_of(part, rank, ranks, later_ns) if is_events else part)

    def events_of(self, part, rank, ranks, later_ns):
        events = bytearray(part)
        for begin, end, _ in self.records(part, {GROUP}):
            payload = begin + 16
            if struct.unpack_from("<i", events, payload + 8)[0] != self.ranks:
                continue
            struct.pack_into("<ii", events, payload + 4, rank, ranks)
            struct.pack_into("<I", events, payload + 28, 0)
            struct.pack_into("<I", events, begin + 12, crc32c(events[payload:end]))
        for begin, end, kind in self.records(part, CHANGING):
            payload = begin + 16
            struct.pack_into("<I", events, payload + REPEATS[kind], rank % 7)
            at = payload + CHANGING[kind]
            struct.pack_into("<q", events, at, struct.unpack_from("<q", events, at)[0] + later_ns)
            struct.pack_into("<I", events, begin + 12, crc32c(events[at:end]))
        return events


def make_rank_files(source, out, ranks, per_node=8, odd_every=0):
    """Writes `ranks` files into `out` from the traces of ranks in `source`: rank r is made of rank r modulo theirs.

    With `odd_every`, only each so-manieth rank is made of rank 0, and the others of the others.
    """
    templates = sorted((Template(path) for path in pathlib.Path(source).glob("rank*.devsan")), key=lambda one: one.rank)
    templates = [one for one in templates if one.rank >= 0]
    if not templates:
        raise ValueError(f"{source} has no trace of a rank")
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        chosen = templates[rank % len(templates)]
        if odd_every:
            chosen = templates[0] if rank % odd_every == 0 else templates[1 + rank % (len(templates) - 1)]
        chosen.write(out / f"rank{rank}.{10_000 + rank}.devsan", rank, ranks, per_node, rank * 1_000_003)
    return sum(os.stat(path).st_blocks * 512 for path in out.iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="directory with the traces of a run of a few ranks")
    parser.add_argument("out", help="directory for the files, which must not be there yet")
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--per-node", type=int, default=8)
    parser.add_argument("--odd-every", type=int, default=0, metavar="N",
                        help="make only each N-th rank of rank 0, and the others of the other ranks")
    options = parser.parse_args()
    try:
        taken = make_rank_files(options.source, options.out, options.ranks, options.per_node, options.odd_every)
    except (OSError, ValueError) as error:
        sys.exit(f"rank_files: {error}")
    print(f"{options.ranks} files, {taken / 2**20:.0f} MiB on the disk")


if __name__ == "__main__":
    main()
