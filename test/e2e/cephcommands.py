# Reads commands of Ceph from standard input, one a line, and prints those that the command tables of this cluster's
# daemons do not have, or not with such arguments. A command may lack its last arguments. With 'tell', the daemon
# that it names has the table.
import copy
import json
import os
import shlex
import sys

import ceph_argparse
import rados

cluster = rados.Rados(name='client.admin', conffile=os.environ['CEPH_CONF'])
cluster.connect(timeout=20)
tables = {}


def ask(prefix):
    ret, out, status = ceph_argparse.json_command(cluster, prefix=prefix, argdict={'format': 'json'}, timeout=20)
    if ret:
        raise SystemExit('%s: %s' % (prefix, status))
    return json.loads(out)


def one_of(kind):
    """Names a daemon of a kind: names in texts are examples."""
    if kind == 'mds':
        return next(m['name'] for m in ask('mds metadata') if m.get('name'))
    if kind == 'osd':
        return str(ask('osd ls')[0])
    return ask('quorum_status')['quorum_names'][0] if kind == 'mon' else ''


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
            if 'x1' in words[0] or words[0].isupper():  # a name in a text, which stands for a value of any type
                desc.numseen += 1
                if desc.N:  # as validate_one does
                    desc.n = desc.numseen + 1
                words.pop(0)
                continue
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
        kind = words[1].split('.', 1)[0]
        target, words = (kind, one_of(kind)), words[2:]
    words = [w for w in words if not w.startswith('--')]
    return any(fits(words, cmd['sig']) for cmd in table(target).values())


for line in sys.stdin:
    words = shlex.split(line)
    if not known(words):
        print(line.strip())
