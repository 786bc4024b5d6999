"""Reads a trace with Perfetto's own definitions (the package perfetto of PyPI) and prints its sums as JSON.

    read.py TRACE [SCHEMA]

With SCHEMA, checks that each line of it, MESSAGE FIELD NUMBER TYPE, is what these definitions say.
"""

import collections
import json
import sys

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as definitions

TYPES = {
    number: name[5:].lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def check_schema(path):
    for line in open(path, encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        message, field, number, kind = line.split()
        descriptor = definitions
        for part in message.split("."):
            descriptor = getattr(descriptor, part)
        found = descriptor.DESCRIPTOR.fields_by_name[field]
        told = found.message_type.full_name if found.message_type else TYPES[found.type]
        told = told.removeprefix("perfetto.protos.")
        told = "int32" if told == "enum" else told
        assert (found.number, told) == (int(number), kind), line


def known(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if field.is_repeated else [value]:
                known(one)


def main():
    if len(sys.argv) > 2:
        check_schema(sys.argv[2])
    trace = definitions.Trace()
    trace.ParseFromString(open(sys.argv[1], "rb").read())
    names, categories = {}, {}
    events = []
    sums = collections.defaultdict(lambda: [0, 0])
    counts = collections.Counter()
    for packet in trace.packet:
        known(packet)
        for one in packet.interned_data.event_names:
            names[one.iid] = one.name
        for one in packet.interned_data.event_categories:
            categories[one.iid] = one.name
        if packet.HasField("track_event"):
            events.append((packet.timestamp, len(events), packet.track_event))
        for event in packet.ftrace_events.event:
            counts[event.WhichOneof("event")] += 1
    events.sort(key=lambda event: event[:2])
    open_slices = collections.defaultdict(list)
    kinds = definitions.TrackEvent
    for time, _, event in events:
        name = names.get(event.name_iid, event.name)
        if event.type == kinds.TYPE_SLICE_BEGIN:
            category = categories[event.category_iids[0]]
            open_slices[event.track_uuid].append((time, category, name))
        elif event.type == kinds.TYPE_SLICE_END:
            begun, category, name = open_slices[event.track_uuid].pop()
            one = sums[f"{category}: {name}"]
            one[0] += 1
            one[1] += time - begun
    assert not any(open_slices.values())
    print(json.dumps({"slices": sums, "events": counts}))


main()
