"""
bcrypt for the interpreters of ceph-mgr.

A bcrypt that is made with PyO3 loads in one interpreter of a process only, and ceph-mgr has one for each module. mgr_util imports it,
so without this file no module of Ceph 18 loads on Debian 13. Here it comes from the system where it loads, and otherwise only the
functions that check passwords are missing, which the dashboard alone calls.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _of_the_system():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or '.') != here]
    spec = importlib.machinery.PathFinder.find_spec('bcrypt', path)
    if spec is None or spec.loader is None:
        raise ImportError('bcrypt is not installed')
    found = importlib.util.module_from_spec(spec)
    sys.modules['bcrypt'] = found
    spec.loader.exec_module(found)
    return found


def _missing(*_args, **_kwargs):
    raise ImportError('bcrypt does not load in this interpreter of ceph-mgr')


_mine = sys.modules[__name__]
try:
    globals().update({k: v for k, v in vars(_of_the_system()).items() if not k.startswith('__')})
except ImportError:
    checkpw = gensalt = hashpw = kdf = _missing
finally:
    sys.modules[__name__] = _mine
