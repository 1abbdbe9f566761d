# Reads commands of Ceph from standard input, one a line, and prints those that the command tables of this cluster's
# daemons do not have, or not with such arguments. A command may lack its last arguments. With 'tell', the daemon
# that it names has the table.
import copy
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


def fits(words, sig):
    """Says whether the words are a command of this signature, or its beginning."""
    words = list(words)
    for desc in copy.deepcopy(sig):
        desc.numseen = 0
        while desc.numseen < desc.n:
            if not words:
                return True
            try:
                ceph_argparse.validate_one(words[0], desc, False)
            except ceph_argparse.ArgumentError:
                if desc.req and desc.numseen == 0:
                    return False
                break
            words.pop(0)
    return not words


def known(words):
    target = ('mon', '')
    if words[0] == 'tell':
        target, words = tuple(words[1].split('.', 1)), words[2:]
    words = [w for w in words if not w.startswith('--')]
    return any(fits(words, cmd['sig']) for cmd in table(target).values())


for line in sys.stdin:
    words = shlex.split(line)
    if not known(words):
        print(line.strip())
