# Reads commands of Ceph from standard input, one a line, and prints those that the command tables of this cluster's
# daemons do not have, or not with such arguments. A command may lack its last arguments. With 'tell', the daemon
# that it names has the table.
import json
import os
import shlex
import sys

import ceph_argparse
import rados

cluster = rados.Rados(name='client.admin', conffile=os.environ['CEPH_CONF'])
cluster.connect(timeout=20)
tables = {}


def table(target):
    if target not in tables:
        ret, out, status = ceph_argparse.json_command(cluster, target=target, prefix='get_command_descriptions', timeout=20)
        if ret:
            raise SystemExit('%s has no table of commands: %s' % (target, status))
        tables[target] = ceph_argparse.parse_json_funcsigs(out.decode(), 'cli')
    return tables[target]


def known(words):
    target = ('mon', '')
    if words[0] == 'tell':
        target, words = tuple(words[1].split('.', 1)), words[2:]
    sigs = (cmd['sig'] for cmd in table(target).values())
    return any(ceph_argparse.matchnum(words, sig, partial=True) >= len(words) for sig in sigs)


for line in sys.stdin:
    words = shlex.split(line)
    if not known(words):
        print(line.strip())
