"""The rooms of the house, and who sees which.

Each of common/, ps_server/ and worker/ is a house of rooms on floors. A room
sees the rooms on the floors below its own and nothing above or beside it; both
ps_server/ and worker/ see all of common/, and never each other.
"""

# From the ground up.
_COMMON = [
    ["common/base"],
    ["common/codec", "common/config", "common/process", "common/rows", "common/tensor"],
    ["common/cluster", "common/optimizer"],
    ["common/rpc"],
    ["common/checkpoint", "common/rpc/frame", "common/rpc/server", "common/rpc/tcp", "common/shared_memory", "common/tls"],
    ["common/summary"],
]

_PS_SERVER = [
    ["ps_server/block", "ps_server/caller"],
    ["ps_server/coordinator", "ps_server/shard"],
    ["ps_server/service"],
    ["ps_server/http"],
    ["ps_server"],
]

_WORKER = [
    ["worker/backend", "worker/client/link", "worker/input/file", "worker/input/image", "worker/input/map"],
    ["worker/client", "worker/layer"],
    ["worker/input/data_set", "worker/metric", "worker/model"],
    ["worker/input/stream"],
    ["worker/input"],
    ["worker/executor"],
    ["worker/tower"],
    ["worker/hook"],
    ["worker/session", "worker/training"],
    ["worker/checkpoint", "worker/step"],
    ["worker/ctl", "worker/task"],
    ["worker/program", "worker/saved"],
    ["worker/python", "worker/verb"],
    ["worker"],
]

# Who sees all of a house. worker/ itself, the composition root, may link a shard
# for --standalone, and a ps task for all-reduce.
_HOUSES = [
    (_COMMON, ["//ps_server:__subpackages__", "//worker:__subpackages__"]),
    (_PS_SERVER, ["//worker:__pkg__"]),
    (_WORKER, []),
]

def _room_of(folder):
    """The room that the folder is, or lies in; "" if there is none."""
    best = ""
    for floors, _ in _HOUSES:
        for floor in floors:
            for room in floor:
                if len(room) > len(best) and (folder + "/").startswith(room + "/"):
                    best = room
    return best

def seen_by():
    """The visibility of a folder's targets: the rooms above it, and the tests."""
    here = _room_of(native.package_name())
    if "/" not in here and here != native.package_name():
        fail("{} is in no room: give it one in third_party/rooms.bzl".format(
            native.package_name(),
        ))
    for floors, others in _HOUSES:
        above = None
        for floor in floors:
            if above != None:
                above += floor
            elif here in floor:
                above = [here]
        if above != None:
            return others + ["//tests:__subpackages__"] + [
                "//{}:{}".format(room, "__pkg__" if _has_rooms(room) else "__subpackages__")
                for room in above
            ]
    fail("no house has the room " + here)

def _has_rooms(room):
    for floors, _ in _HOUSES:
        for floor in floors:
            for other in floor:
                if other.startswith(room + "/"):
                    return True
    return False
