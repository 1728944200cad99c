"""What the profile of a worker tells of its card."""

# Its lanes, as worker/hook/profiler.cc names them where there is one device.
COMPUTE, TO_DEVICE, TO_HOST = "device compute", "to device", "to host"
# What each step begins with on the device, when its input is there.
FIRST = "forward"


class DeviceTrace:
    """The steps of one device in a profile."""

    def __init__(self, profile):
        """`profile` is the JSON of the file. Raises ValueError."""
        events = profile["traceEvents"]
        lanes = {event["tid"]: event["args"]["name"] for event in events
                 if event["ph"] == "M" and event["name"] == "thread_name"}
        self._spans = {}
        for event in events:
            if event["ph"] == "X":
                self._spans.setdefault(lanes[event["tid"]], []).append(event)
        if COMPUTE not in self._spans:
            raise ValueError("the profile has no lane '%s': its worker has "
                             "computed in the host's memory, or on several "
                             "devices" % COMPUTE)
        begins = {}
        for span in self._spans[COMPUTE]:
            if span["name"] == FIRST:
                begins.setdefault(span["args"]["step"], span["ts"])
        self.steps = len(begins)
        self._begin = min(begins.values(), default=0)
        self._end = max(begins.values(), default=0)
        if self._end <= self._begin:
            raise ValueError("the profile has %d steps of a device, over %g "
                             "us; wanted 2 or more, with time between them" % (
                                 self.steps, self._end - self._begin))

    def period_us(self):
        """The mean, from where a step begins to compute to where the next one
        does."""
        return (self._end - self._begin) / (self.steps - 1)

    def busy_percent(self):
        """At most, of whole periods: what lies between the first and the last
        kernel of a stretch of layers counts, with the gaps between kernels."""
        # The spans of a lane do not overlap.
        busy = sum(max(0, min(span["ts"] + span["dur"], self._end) -
                       max(span["ts"], self._begin))
                   for span in self._spans[COMPUTE])
        return round(100 * busy / (self._end - self._begin), 1)

    def bytes_a_step(self, lane):
        """Of the copies in `lane`, the mean."""
        return sum(span["args"].get("bytes", 0)
                   for span in self._spans.get(lane, ())) / self.steps
