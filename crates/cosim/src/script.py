"""Runs a script unchanged in the virtual time of wingbeat's bench (docs/lockstep.md).

Usage: script.py SEED HOST:PORT RADIO SCRIPT ARGUMENT..., in the directory of the bench's socket `bench.sock`

One thread of the script runs at a time, until it waits. Where all wait, the turn is the bench's: it simulates until the first of
them is due, or until its aircraft's autopilot has sent something. Threads follow each other in the order in which they began. So the script's
bytes do not depend on the computer.

Clocks read the bench's time. Reading one takes SPENT_US of it, a read of a socket that finds nothing EMPTY_US: a loop that waits for a
time, or for bytes, ends. A connection to HOST:PORT is the bench's, and does not leave this process.

RADIO is the UDP port of the aircraft's radio, 0 without one: what is sent there to a broadcast address is on the bench's medium, and a
socket bound to it receives what arrives; aircraft N is 10.0.0.N.

A turn, numbers little-endian: from the bench how far time has passed, microseconds (8 bytes); what the autopilot sent, its length first
(4); how many datagrams arrived (4), each with its sender's index (2) and its length (2) first. Back: until when the script waits (8),
whether it has ended (1); what it sent, its length first (4); how many datagrams it broadcast (4), each with its length first (2).
"""

import _socket
import _thread
import atexit
import datetime
import errno
import functools
import os
import queue
import random
import select
import selectors
import socket
import struct
import sys
import threading
import time
import traceback
import types
import weakref

NEVER_US = 2**63
SPENT_US = 10
EMPTY_US = 1_000
YIELD_US = 100
# 2026-01-01, as the autopilots' clocks.
EPOCH_US = 1_767_225_600_000_000
DATAGRAM_BYTES_MOST = 1472
# An empty socket holds more.
PART_BYTES = 65536

real = types.SimpleNamespace(
    lock=_thread.allocate_lock,
    start=_thread.start_new_thread,
    exit=os._exit,
    select=select.select,
    sleep=time.sleep,
    connect=socket.socket.connect,
    connect_ex=socket.socket.connect_ex,
    setsockopt=socket.socket.setsockopt,
    bind=socket.socket.bind,
    sendto=socket.socket.sendto,
    send=socket.socket.send,
    recv=socket.socket.recv,
    gmtime=time.gmtime,
    localtime=time.localtime,
    strftime=time.strftime,
    datetime=datetime.datetime,
    date=datetime.date,
)


class Task:
    """A thread: what it waits for, and the lock on which it really waits while another runs."""

    def __init__(self, thread=None):
        self.thread = thread
        self.gate = real.lock()
        self.gate.acquire()
        self.ready, self.until_us = None, 0
        self.is_ready = False

    def is_due(self):
        self.is_ready = self.ready is not None and self.ready()
        return self.is_ready or self.until_us <= bench.now_us


class Bench:
    """The other side of the turns, and the connection to the autopilot."""

    def __init__(self):
        # Below `socket`, whose waiting is replaced.
        self.socket = _socket.socket(_socket.AF_UNIX)
        while True:
            # It is bound a moment after we were started.
            try:
                self.socket.connect("bench.sock")
                break
            except (FileNotFoundError, ConnectionRefusedError):
                real.sleep(0.002)
        self.line = None
        self.arrived, self.sent = b"", bytearray()
        self.radios, self.heard, self.broadcast = [], [], []
        self.take()
        self.now_us = self.limit_us

    def read(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                real.exit(0)
            data += part
        return data

    def take(self):
        self.limit_us, length = struct.unpack("<QI", self.read(12))
        self.arrived += self.read(length)
        for _ in range(*struct.unpack("<I", self.read(4))):
            sender, length = struct.unpack("<HH", self.read(4))
            self.heard.append((sender, self.read(length)))

    def drain(self):
        """What was sent leaves the socket, which has room for more then."""
        while self.line:
            try:
                part = self.line.recv(PART_BYTES)
            except BlockingIOError:
                break
            if not part:
                self.line = None
            self.sent += part

    def hand_over(self, until_us, has_ended=False):
        self.drain()
        sent, self.sent = bytes(self.sent), bytearray()
        frame = struct.pack("<QBI", until_us, has_ended, len(sent)) + sent + struct.pack("<I", len(self.broadcast))
        frame += b"".join(struct.pack("<H", len(datagram)) + datagram for datagram in self.broadcast)
        self.broadcast = []
        self.socket.sendall(frame)
        if not has_ended:
            self.take()

    def deliver(self):
        """What has arrived is readable now; what is sent to no one is lost, what finds no room waits."""
        if self.line:
            try:
                self.arrived = self.arrived[self.line.send(self.arrived) :]
            except BlockingIOError:
                pass
            except OSError:
                self.line = None
        if not self.line:
            self.arrived = b""
        heard, self.heard = self.heard, []
        for radio in list(self.radios):
            for sender, datagram in heard:
                try:
                    radio.send(struct.pack("<H", sender) + datagram)
                except BlockingIOError:
                    # Its queue is full.
                    break
                except OSError:
                    self.radios.remove(radio)
                    break

    def connect(self, script_socket):
        self.line = self.pair(script_socket, _socket.SOCK_STREAM)

    def pair(self, script_socket, kind):
        """The script's socket becomes one end of a pair; the other."""
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, kind)
        ours.setblocking(False)
        descriptor = script_socket.fileno()
        blocks = os.get_blocking(descriptor)
        os.dup2(theirs.fileno(), descriptor, inheritable=False)
        theirs.close()
        os.set_blocking(descriptor, blocks)
        connected.add(script_socket)
        return ours


bench = None
address = None
radio = 0
connected, listening = weakref.WeakSet(), weakref.WeakSet()
current = Task(threading.main_thread())
tasks = [current]


def choose():
    """The task that runs next, when it is its time."""
    undelivered = bool(bench.arrived or bench.heard)
    while True:
        after = tasks.index(current) + 1 if current in tasks else 0
        for task in tasks[after:] + tasks[:after]:
            if task.is_due():
                return task
        until_us = min(task.until_us for task in tasks)
        if until_us <= bench.limit_us:
            bench.now_us = max(bench.now_us, until_us)
        elif undelivered or bench.now_us < bench.limit_us:
            bench.now_us = bench.limit_us
            bench.deliver()
            undelivered = False
        else:
            bench.hand_over(until_us)
            undelivered = True


def run(task):
    global current
    current = task
    task.gate.release()


def wait(ready, until_us):
    """The thread waits until `ready()` or until that time; whether it was ready."""
    me = current
    me.ready, me.until_us = ready, until_us
    task = choose()
    if task is not me:
        run(task)
        me.gate.acquire()
    return me.is_ready


def spend(microseconds):
    until_us = bench.now_us + microseconds
    if until_us <= bench.limit_us:
        bench.now_us = until_us
    else:
        wait(None, until_us)


def after_us(seconds):
    return bench.now_us + max(0, -int(-seconds * 1_000_000 // 1))


def end_us(timeout):
    return NEVER_US if timeout is None else after_us(timeout)


# Threads and locks. Everything else of `threading` and `queue` is made of these.


def start_thread(function, arguments, keywords=None):
    thread = getattr(function, "__self__", None)
    task = Task(thread if isinstance(thread, threading.Thread) else None)

    def begin():
        task.gate.acquire()
        try:
            function(*arguments, **(keywords or {}))
        except SystemExit:
            pass
        finally:
            tasks.remove(task)
            run(choose())

    tasks.append(task)
    return real.start(begin, ())


def start_joinable_thread(function, handle=None, daemon=True):
    """Of Python 3.13 and later."""
    ident = start_thread(function, ())
    return handle if handle is not None else ident


def is_alive(thread):
    return any(task.thread is thread for task in tasks)


def join(thread, timeout=None):
    if not thread._started.is_set():
        raise RuntimeError("cannot join thread before it is started")
    if thread is threading.current_thread():
        raise RuntimeError("cannot join current thread")
    wait(lambda: not is_alive(thread), end_us(timeout))


class Lock:
    def __init__(self):
        self._is_held = False

    def acquire(self, blocking=True, timeout=-1):
        if self._is_held:
            if not blocking:
                spend(YIELD_US)
                return False
            if not wait(lambda: not self._is_held, NEVER_US if timeout < 0 else after_us(timeout)):
                return False
        self._is_held = True
        return True

    def release(self):
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False

    def locked(self):
        return self._is_held

    def _is_owned(self):
        return self._is_held

    def _at_fork_reinit(self):
        self._is_held = False

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


# Waiting.


def sleep(seconds):
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    wait(None, max(after_us(seconds), bench.now_us + YIELD_US))


def select_(reading, writing, failing, timeout=None):
    found = [[], [], []]

    def ready():
        try:
            found[:] = real.select(reading, writing, failing, 0)
        except (OSError, ValueError):
            # For the thread that asked, below.
            return True
        return any(found)

    if not ready():
        wait(ready, max(end_us(timeout), bench.now_us + EMPTY_US))
    return tuple(found) if any(found) else real.select(reading, writing, failing, 0)


def reading(name, original=None):
    original = original or getattr(socket.socket, name)

    def read(self, *arguments, **keywords):
        timeout = self.gettimeout()
        if timeout != 0 and self.fileno() >= 0 and not select_([self], [], [], timeout)[0]:
            raise TimeoutError("timed out")
        try:
            return original(self, *arguments, **keywords)
        except BlockingIOError:
            spend(EMPTY_US)
            raise

    return read


def is_bench(to):
    local = ("127.0.0.1", "localhost")
    if not isinstance(to, tuple) or to[1] != address[1]:
        return False
    return to[0] == address[0] or (to[0] in local and address[0] in local)


def connect(self, to):
    return bench.connect(self) if is_bench(to) else real.connect(self, to)


def connect_ex(self, to):
    return bench.connect(self) or 0 if is_bench(to) else real.connect_ex(self, to)


def send(self, data, *flags):
    if self not in connected:
        return real.send(self, data, *flags)
    bench.drain()
    return real.send(self, memoryview(data).cast("B")[:PART_BYTES], *flags)


def sendall(self, data, *flags):
    left = memoryview(data).cast("B")
    while left:
        left = left[send(self, left, *flags) :]


def is_radio(self, to):
    return radio and self.type == socket.SOCK_DGRAM and isinstance(to, tuple) and to[1] == radio


def bind(self, to):
    if not is_radio(self, to):
        return real.bind(self, to)
    bench.radios.append(bench.pair(self, _socket.SOCK_DGRAM))
    listening.add(self)


def sendto(self, data, *rest):
    to = rest[-1]
    if not is_radio(self, to) or not (to[0] == "<broadcast>" or to[0].endswith(".255")):
        return real.sendto(self, data, *rest)
    if not 1 <= len(data) <= DATAGRAM_BYTES_MOST:
        raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
    bench.broadcast.append(bytes(data))
    return len(data)


def of_radio(read):
    """The same for a socket that is bound to the radio: the sender of a datagram is before it."""

    def from_radio(self, size, *flags):
        if self not in listening:
            return read(self, size, *flags)
        packet = reading("recv", real.recv)(self, size + 2, *flags)
        (sender,) = struct.unpack("<H", packet[:2])
        return packet[2:], ("10.0.0.%d" % (sender + 1), radio)

    return from_radio


def setsockopt(self, *arguments):
    # TCP's are not this connection's.
    return None if self in connected else real.setsockopt(self, *arguments)


# Clocks.


def clock(offset_us):
    """A clock in seconds, and the same in nanoseconds."""

    def nanoseconds(*_):
        spend(SPENT_US)
        return (offset_us + bench.now_us) * 1_000

    return lambda *_: nanoseconds() / 1e9, nanoseconds


(wall, wall_ns), (monotonic, monotonic_ns) = clock(EPOCH_US), clock(0)


def of_now(function):
    return lambda seconds=None: function(wall() if seconds is None else seconds)


def strftime(form, moment=None):
    return real.strftime(form, time.localtime() if moment is None else moment)


class OfReal(type):
    def __instancecheck__(cls, value):
        return isinstance(value, cls.__mro__[1])


class VirtualDatetime(real.datetime, metaclass=OfReal):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(wall(), tz)

    @classmethod
    def today(cls):
        return cls.fromtimestamp(wall())

    @classmethod
    def utcnow(cls):
        return cls.fromtimestamp(wall(), datetime.timezone.utc).replace(tzinfo=None)


class VirtualDate(real.date, metaclass=OfReal):
    @classmethod
    def today(cls):
        return cls.fromtimestamp(wall())


def replace():
    """From here on all that is imported waits and reads clocks as above."""
    for module in (_thread, threading):
        for name in ("start_new_thread", "_start_new_thread", "start_new"):
            if hasattr(module, name):
                setattr(module, name, start_thread)
        for name in ("start_joinable_thread", "_start_joinable_thread"):
            if hasattr(module, name):
                setattr(module, name, start_joinable_thread)
        for name in ("allocate_lock", "_allocate_lock", "allocate", "Lock"):
            if hasattr(module, name):
                setattr(module, name, Lock)
    threading._CRLock = None
    functools.RLock = _thread.RLock = threading.RLock
    threading.Thread.is_alive, threading.Thread.join = is_alive, join
    queue.SimpleQueue = queue._PySimpleQueue

    time.sleep = sleep
    time.time, time.time_ns = wall, wall_ns
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, monotonic)
        setattr(time, name + "_ns", monotonic_ns)
    is_wall = time.CLOCK_REALTIME.__eq__
    time.clock_gettime = lambda which: wall() if is_wall(which) else monotonic()
    time.clock_gettime_ns = lambda which: wall_ns() if is_wall(which) else monotonic_ns()
    time.gmtime, time.localtime = of_now(real.gmtime), of_now(real.localtime)
    time.ctime = lambda seconds=None: time.asctime(time.localtime(seconds))
    time.strftime = strftime
    threading._time = queue.time = monotonic
    datetime.datetime, datetime.date = VirtualDatetime, VirtualDate

    select.select = select_
    # Without them libraries wait by select.
    for name in ("poll", "epoll", "devpoll", "kqueue"):
        if hasattr(select, name):
            delattr(select, name)
    for name in ("PollSelector", "EpollSelector", "DevpollSelector", "KqueueSelector"):
        if hasattr(selectors, name):
            delattr(selectors, name)
    selectors.DefaultSelector = selectors.SelectSelector
    selectors.SelectSelector._select = staticmethod(select_)
    for name in ("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "accept"):
        setattr(socket.socket, name, reading(name))
    socket.socket.recvfrom = of_radio(socket.socket.recvfrom)
    received = socket.socket.recv
    socket.socket.recv = lambda self, size, *flags: (
        self.recvfrom(size, *flags)[0] if self in listening else received(self, size, *flags)
    )
    socket.socket.bind, socket.socket.sendto = bind, sendto
    socket.socket.send, socket.socket.sendall = send, sendall
    socket.socket.connect, socket.socket.connect_ex = connect, connect_ex
    socket.socket.setsockopt = setsockopt
    os._exit = end


def end(code):
    """The bench is told how the script ended, with its last bytes."""
    sys.stdout.flush()
    sys.stderr.flush()
    bench.hand_over(code & 0xFF, has_ended=True)
    real.exit(code)


def main():
    global bench, address, radio
    seed, place, radio, script = sys.argv[1:5]
    host, port = place.rsplit(":", 1)
    address, radio = (host, int(port)), int(radio)
    bench = Bench()
    replace()
    random.seed(int(seed))
    os.chdir(os.path.dirname(script))
    sys.argv, sys.path[0] = sys.argv[4:], os.path.dirname(script)
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    code = 0
    try:
        with open(script, "rb") as file:
            exec(compile(file.read(), script, "exec"), module.__dict__)
    except SystemExit as ended:
        code = ended.code
        if not isinstance(code, (int, type(None))):
            print(code, file=sys.stderr)
            code = 1
    except BaseException as error:
        traceback.print_exception(type(error), error, error.__traceback__.tb_next)
        code = 1
    for last in reversed(getattr(threading, "_threading_atexits", [])):
        last()
    own = {id(None), id(threading.main_thread())}
    wait(lambda: all(id(task.thread) in own or task.thread.daemon for task in tasks), NEVER_US)
    atexit._run_exitfuncs()
    end(code or 0)


if __name__ == "__main__":
    main()
