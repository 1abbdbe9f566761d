"""
The orchestrator of Ceph clusters that Holdfast runs ('ceph orch').

This module decides nothing. It passes each call on to the agent of this host, over a socket in the directory of this mgr, and makes the
objects of package orchestrator from the answer. The class has exactly the methods that the leader of Holdfast names, because Ceph finds
out by the class which commands there are.
"""

import collections
import copy
import datetime
import enum
import errno
import functools
import http.client
import importlib
import inspect
import json
import os
import socket
import sys
import threading
import time
import uuid

import mgr_module
import orchestrator
from ceph.deployment import inventory
from ceph.deployment.hostspec import HostSpec
from ceph.deployment.service_spec import HostPlacementSpec, PlacementSpec, ServiceSpec
from ceph.utils import str_to_datetime
from orchestrator import OrchestratorError

DEADLINE = 3.0  # seconds for one call: a slow one holds up every other 'ceph orch'
LOOK_EVERY = 10.0  # seconds between two looks at which methods there are
FOLLOW_EVERY = 2.0  # seconds, while something is under way
RETRY_EVERY = 1.0  # seconds, until the leader has answered once
LEADER_BACK = 20.0  # seconds within which another leader answers, after one is gone

# Ceph 20 pickles what goes from one interpreter to another; earlier releases hand over the objects themselves.
PICKLES = hasattr(mgr_module, 'CLICommandBase')

# Methods that answer by themselves. All others answer by an OrchResult.
PLAIN = ('available', 'cancel_completions', 'pause', 'resume')
# Methods of the base class that are right as they are.
INHERITED = ('is_orchestrator_module', 'get_feature_set')


class _Connection(http.client.HTTPConnection):
    """HTTP over the socket of the agent."""

    def __init__(self, path):
        super().__init__('localhost', timeout=DEADLINE)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _peer():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peer.json')) as f:
        return json.load(f)


def _send(method, args, call):
    connection = _Connection(_peer()['socket'])
    try:
        headers = {'Content-Type': 'application/json', 'Holdfast-Call': call}
        connection.request('POST', '/' + method, json.dumps(args), headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def ask(method, args):
    """The answer to a call. Each failure is an OrchestratorError: Ceph shows anything else as a traceback."""
    call = uuid.uuid4().hex  # a call that is sent twice is done once
    try:
        try:
            answer = _send(method, args, call)
        except (ConnectionError, http.client.HTTPException):  # as when the agent is started again
            answer = _send(method, args, call)
        if not isinstance(answer, dict):
            raise ValueError('another program answers on its socket')
    except Exception as e:
        why = 'the agent of Holdfast on this host does not answer: {}; check \'holdfast agent\' there'.format(e)
        raise OrchestratorError(why, errno=-errno.EAGAIN)
    if 'error' in answer:
        raise OrchestratorError(answer['error'], errno=answer.get('errno', -22))
    return answer.get('result')


def insist(method, args):
    """The answer to a call whose failure Ceph shows as a traceback: it waits until a leader answers, if there is none."""
    end = time.monotonic() + LEADER_BACK
    while True:
        try:
            return ask(method, args)
        except OrchestratorError as e:
            if e.errno != -errno.EAGAIN or time.monotonic() > end:
                raise
        time.sleep(RETRY_EVERY)


# What Python 3.13 finds on a class it keeps by a number of the class, and classes of two interpreters share numbers: an
# interpreter that has looked at a class of another one may then take its attributes for those of a class of its own. So
# the classes of arguments are asked by these descriptors, which look nothing up, and _unkept is for those of results.
_MODULE, _NAME, _BASES, _DICT = (type.__dict__[n].__get__ for n in ('__module__', '__qualname__', '__mro__', '__dict__'))


def _unkept(*classes):
    """Has Python keep nothing of classes: it gives each 1000 numbers at most, and no class is kept without one."""
    for of in classes:
        for n in range(1100):
            of._holdfast = n
            getattr(of, '_holdfast')


def _attributes(value):
    """The dict of an object, which may be of another interpreter."""
    for of in _BASES(type(value)):
        if '__dict__' in _DICT(of):
            return _DICT(of)['__dict__'].__get__(value, type(value))
    return {}


def _own(value):
    """value, with all objects of another interpreter made anew as objects of this one."""
    of = type(value)
    if of in (dict, list, tuple, set, frozenset):
        return {k: _own(v) for k, v in value.items()} if of is dict else of(_own(v) for v in value)
    own, module = of, _MODULE(of)
    if module.split('.')[0] in ('ceph', 'orchestrator'):
        own = getattr(importlib.import_module(module), _NAME(of), of)
    if own is of:
        return value
    if issubclass(own, enum.Enum):
        return own(_attributes(value)['_value_'])
    if issubclass(own, tuple):
        return tuple.__new__(own, [_own(v) for v in value])
    made = object.__new__(own)
    made.__dict__.update(_own(_attributes(value)))
    return made


def _encode(value):
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, dict):
        return {str(k): _encode(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_encode(v) for v in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if hasattr(value, 'to_json'):
        made = _encode(value.to_json())
        if getattr(value, 'preview_only', False) and isinstance(made, dict):
            made['preview_only'] = True
        return made
    return {k: _encode(v) for k, v in vars(value).items() if not k.startswith('_')}


def _known(of, values):
    """values without those that the constructor of this release of Ceph does not know."""
    parameters = inspect.signature(of.__init__).parameters
    return {k: v for k, v in values.items() if k in parameters}


def _times(row, *names):
    for name in names:
        if row.get(name):
            row[name] = str_to_datetime(row[name])
    return row


def _host(row):
    return HostSpec(**_known(HostSpec, row))


def _device(row, created):
    return inventory.Device(**_known(inventory.Device, dict(row, created=created)))


def _inventory(row):
    created = _times(row, 'created').get('created')
    devices = inventory.Devices([_device(d, created) for d in row['devices']])
    return orchestrator.InventoryHost(row['name'], devices, row.get('labels'), row.get('addr'))


def _daemon(row):
    row = _times(row, 'created', 'started', 'last_refresh')
    row['status'] = orchestrator.DaemonDescriptionStatus(row['status'])
    return orchestrator.DaemonDescription(**_known(orchestrator.DaemonDescription, row))


def _spec(doc):
    spec = ServiceSpec.from_json(doc)
    if not PICKLES:
        # Python 3.13 keeps attributes of types by numbers that types of two interpreters share. The interpreter that this
        # object goes to would take __dict__ of this class, which to_json reads, for that of its own.
        made = spec.to_json()
        spec.to_json = lambda: copy.deepcopy(made)
    return spec


def _service(row):
    row = _times(row, 'created', 'deleted', 'last_refresh')
    row['spec'] = _spec(row['spec'])
    return orchestrator.ServiceDescription(**_known(orchestrator.ServiceDescription, row))


class _Leaving(dict):
    """A row of 'ceph orch osd rm status' as releases before Ceph 20 read it."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)

    def drain_status_human(self):
        return self['drain_status']

    def get_pg_count(self):
        return self['pg_count']

    def to_json(self):
        return dict(self)


def _leaving(row):
    if not PICKLES:
        return _Leaving(row)
    # Ceph 20 reads keys in its CLI and attributes in its dashboard.
    made = collections.OrderedDict(row)
    made.osd_id = row['osd_id']
    made.to_json = functools.partial(dict, row)
    return made


if sys.version_info >= (3, 12) and not PICKLES:
    _unkept(orchestrator.OrchResult, HostSpec, orchestrator.InventoryHost, inventory.Devices, inventory.Device, _Leaving,
            orchestrator.DaemonDescription, orchestrator.DaemonDescriptionStatus, orchestrator.ServiceDescription,
            ServiceSpec, PlacementSpec, HostPlacementSpec)

ROWS = {
    'remove_osds_status': _leaving,
    'get_hosts': _host,
    'get_inventory': _inventory,
    'list_daemons': _daemon,
    'describe_service': _service,
}


def _decode(method, result):
    if method in ROWS:
        try:
            return [ROWS[method](row) for row in result]
        except Exception as e:  # not every exception survives the way to another interpreter
            raise OrchestratorError('Ceph does not take the answer of Holdfast to {}: {}'.format(method, e))
    return '' if result is None else result  # Ceph takes None for an answer that is missing


def _named(signature, args, kwargs):
    """The arguments by name. Callers of other releases may give more of them than there are, or fewer."""
    names = [n for n in signature.parameters if n != 'self']
    given = dict(zip(names, args))
    given.update({k: v for k, v in kwargs.items() if k in names})
    try:
        return {k: _encode(v if PICKLES else _own(v)) for k, v in given.items()}
    except Exception as e:
        raise OrchestratorError('Holdfast cannot read the arguments of a call: {}: {}'.format(type(e).__name__, e))


def _make(name):
    """The method of a name, or None where this release of Ceph has none."""
    base = getattr(orchestrator.Orchestrator, name, None)
    if base is None or name in INHERITED:
        return None
    signature = inspect.signature(base)
    call = insist if name in PLAIN else ask

    def method(self, *args, **kwargs):
        answer = _decode(name, call(name, _named(signature, args, kwargs)))
        if name not in ROWS:
            self._wake.set()  # it may have begun something
        return answer

    def available(self):
        try:
            ok, why, details = ask(name, {})
            return ok, why, details
        except OrchestratorError as e:
            return False, str(e), {}

    made = available if name == 'available' else method
    made.__name__ = made.__qualname__ = name
    return made if name in PLAIN else orchestrator.handle_orch_error(made)


class Module(orchestrator.Orchestrator, mgr_module.MgrModule):
    MODULE_OPTIONS = []
    NOTIFY_TYPES = []
    if hasattr(mgr_module, 'CLICommandBase'):  # since Ceph 20
        CLICommand = mgr_module.CLICommandBase.make_registry_subtype('HoldfastCLICommand')

    made = set()

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.have(self._last())
        self._wake = threading.Event()
        self._ended = self._heard = False
        self._shown = set()  # what 'ceph -s' shows, by the ids of Actions
        self._state()

    @staticmethod
    def can_run():
        return True, ''

    @classmethod
    def have(cls, methods):
        """Gives the class exactly these methods."""
        methods = ['available'] + list(methods)
        for name in cls.made.difference(methods):
            delattr(cls, name)
            cls.made.discard(name)
        for name in methods:
            method = None if name in cls.made else _make(name)
            if method is not None:
                setattr(cls, name, method)
                cls.made.add(name)

    def _last(self):
        """
        The methods that the leader named last. The mons keep them, so that a mgr that takes over while the leader cannot be reached says that,
        and not that there are no such commands.
        """
        try:
            return json.loads(self.get_store('methods') or '[]')
        except Exception as e:
            self.log.debug('the methods that were named last cannot be read: %s', e)
            return []

    def _state(self):
        """What Holdfast can do, and what is under way; None where it is not heard."""
        try:
            state = ask('state', {})
            self.have(state['methods'])
            self._heard = True
            if state['methods'] != self._last():
                self.set_store('methods', json.dumps(state['methods']))
            return state
        except Exception as e:
            self.log.debug('the state of Holdfast is not known: %s', e)
            return None

    def _look(self):
        """How long to wait until the next look."""
        state = self._state()
        if state is None:
            return LOOK_EVERY if self._heard else RETRY_EVERY
        try:
            return FOLLOW_EVERY if self._follow(state['progress']) else LOOK_EVERY
        except Exception as e:  # such as a module progress that is turned off
            self.log.debug('what is under way cannot be shown: %s', e)
            return LOOK_EVERY

    def _follow(self, progress):
        """Shows in 'ceph -s' and 'ceph progress' what is under way."""
        for p in progress:
            if not p['ended']:
                self._shown.add(p['id'])
                self.remote('progress', 'update', p['id'], p['message'], p['done'], ['orch'], add_to_ceph_s=True)
            elif p['id'] in self._shown:
                self._shown.discard(p['id'])
                if p.get('failed'):
                    self.remote('progress', 'fail', p['id'], p['failed'])
                else:
                    self.remote('progress', 'complete', p['id'])
        return self._shown

    def serve(self):
        pause = RETRY_EVERY
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._ended:
                return
            pause = self._look()

    def shutdown(self):
        self._ended = True
        self._wake.set()
