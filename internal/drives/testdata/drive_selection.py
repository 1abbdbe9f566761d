"""Reads a list of drive groups with disks, and says what Ceph's own library selects, or refuses."""
import json
import sys

from ceph.deployment.drive_group import DriveGroupSpec
from ceph.deployment.drive_selection import DriveSelection
from ceph.deployment.inventory import Devices
from ceph_volume.util.disk import human_readable_size


def select(case):
    group = dict(case['group'], service_type='osd', service_id='g', placement={'host_pattern': '*'})
    for disk in case['disks']:
        disk['sys_api']['human_readable_size'] = human_readable_size(disk['sys_api']['size'])
    try:
        spec = DriveGroupSpec.from_json(group)
        spec.validate()
        chosen = DriveSelection(spec, Devices.from_json(case['disks']).devices)
        return {
            'data': [d.path for d in chosen.data_devices()],
            'wal': [d.path for d in chosen.wal_devices()],
            'db': [d.path for d in chosen.db_devices()],
        }
    except Exception as e:
        return {'error': '{}: {}'.format(type(e).__name__, e)}


json.dump([select(case) for case in json.load(sys.stdin)], sys.stdout)
