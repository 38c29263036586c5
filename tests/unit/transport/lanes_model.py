#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Model test of waiting over several lanes (progress.c, P7 to P9; lane.h, L9).

  lanes_model.py          every interleaving of the configurations below
  lanes_model.py --parts  leave out one part at a time: what breaks; fails when
                          nothing does

Explicit states. Threads of one process: `a` waits in lane 0, `b` once in lane 1,
where it polls until it is done, or joins lane 0's wait at any time; `c` makes
work in lane 1, or completes by itself what b waits for, or notes there what is
lane 0's business as well, and does not wait. a may be in a user's function while
it is the owner; one that is there when b's request is complete returns no sooner
than b's wait. Processes `p0` and `p1` publish a message for lane 0 and for lane 1. Each happens
once, so that whoever leaves never comes back. Memory is x86-TSO, as in
agent_model.py: what is read without a lock is stored through a FIFO, and so is
letting go of a lock; a locked instruction drains the own FIFO; membarrier drains
those of the process (private) or all (global), one after the other, while
everybody else goes on. Sleeper and producers are ordered by the sleeper's
barrier, or each by a fence (wake.h, W3 and W5).

Properties
  -   at most one thread is owner, and it has lane 0 while it polls
  -   where nobody has a step left, everybody is out: no deadlock, no message
      and no completion is lost, what was noted is run, and no thread is left
      asleep
  -   from every state such an end can be reached

Not in the model: spinning, other hooks, descriptors, the agent, a third lane.
"""
import sys
from collections import deque
from itertools import product

PARTS = {
    'defers_joined': 'a completion in a lane that is joined defers to lane 0',
    'park_again': 'who parks looks at the pollers again, after the barrier',
    'park_barrier': 'the barrier of who parks',
    'last_calls': 'the last poller that leaves calls one who is parked',
    'last_look_lanes': 'the last look before sleeping is at lane 1, too',
    'last_look_lock': 'that look is under the lock of lane 1, or nobody sleeps',
    'run_all': 'who clears the flag and goes to run it runs all that is noted',
    'rouse_after_work': 'who makes work in lane 1 looks whether the owner '
                        'sleeps',
    'run_looks': 'who runs what a lane defers looks whether waits are over',
    'run_rouses': 'who runs what a lane defers rouses a sleeping owner',
    'sleeper_barrier': 'the sleeper\'s membarrier, or fence',
    'hand_over': 'who ends its wait in lane 0 hands over',
}
THREADS = 'abc'
BUFFERS = ['a', 'b', 'c', 'p0', 'p1']
# Memory; what follows are program counters and buffers.
NAMES = ['word', 'parked', 'pollers', 'd0', 'd1', 'over', 'l0', 'l1', 'm0', 'm1',
         'owner', 'asleep', 'deferred', 'noted', 'joined', 'followers', 'called',
         'futex'] + ['pc_' + t for t in BUFFERS] + ['f_' + t for t in BUFFERS]
AT = {name: i for i, name in enumerate(NAMES)}


class State:
    """A state that is being changed."""

    def __init__(self, t):
        self.t = list(t)

    def __getitem__(self, name):
        return self.t[AT[name]]

    def __setitem__(self, name, value):
        self.t[AT[name]] = value

    def frozen(self):
        return tuple(self.t)


def initial(c):
    values = dict.fromkeys(NAMES, 0)
    values.update(l0='', l1='', owner='', followers='', called='', futex='')
    for who in BUFFERS:
        values['f_' + who] = ()
        values['pc_' + who] = 'start' if who in c else 'out'
    return tuple(values[n] for n in NAMES)


def store(s, who, name, value):
    s['f_' + who] = s['f_' + who] + ((name, value),)


def read(s, who, name):
    for var, value in reversed(s['f_' + who]):
        if var == name:
            return value
    return s[name]


def drain_one(s, who):
    (name, value), rest = s['f_' + who][0], s['f_' + who][1:]
    s[name] = value
    s['f_' + who] = rest


def drain(s, who):
    while s['f_' + who]:
        drain_one(s, who)


def lock(s, who, name):
    """False: it is not free."""
    if s[name]:
        return False
    drain(s, who)
    s[name] = who
    return True


def is_done(s, who):
    """By who waits in lane 0; in lane 1 it is d1, under the lock."""
    return read(s, who, 'd0' if who == 'a' else 'over')


def call(s, who):
    s['followers'] = s['followers'].replace(who, '')
    s['called'] = ''.join(sorted(s['called'] + who))


def call_finished(s, who):
    """By who, for the others' waits."""
    for f in s['followers']:
        if read(s, who, 'd0' if f == 'a' else 'over'):
            call(s, f)


def hand_over(s):
    if not s['owner'] and s['followers']:
        call(s, s['followers'][0])


def rouse(s, who):
    """A locked exchange, if the word says so."""
    if read(s, who, 'word'):
        drain(s, who)
        s['word'] = 0
        s['futex'] = ''


def complete(s, who, parts):
    """Lane 1's request, by its holder."""
    store(s, who, 'd1', 1)
    if s['joined'] and 'defers_joined' in parts:
        s['deferred'] = 1


def look_at_waits(s, who):
    """Is the wait that has joined over? By lane 1's holder."""
    if s['joined'] and read(s, who, 'd1') and not read(s, who, 'over'):
        store(s, who, 'over', 1)
        s['deferred'] = 1


def poll_one(s, who, parts):
    """Lane 1, by its holder."""
    if s['m1']:
        s['m1'] = 0
        complete(s, who, parts)
    look_at_waits(s, who)


def leave_other(s, who):
    """By who has both locks."""
    if s['deferred']:
        s['deferred'] = s['noted'] = 0


def poll_zero(s, who):
    if s['m0']:
        s['m0'] = 0
        store(s, who, 'd0', 1)


def step(s, who, parts, order):
    """Steps of a thread: pairs of words and a state; the choices it has."""
    pc = s['pc_' + who]
    out = []

    def to(next_pc, do=None, words=None):
        n = State(s.t)
        if do and do(n) is False:
            return
        n['pc_' + who] = next_pc
        out.append((words or pc, n.frozen()))

    def barrier(next_pc, members, kind):
        """One member at a time; members is what is left."""
        for m in members:
            left = ''.join(x for x in members if x != m)

            def one(n, m=m):
                drain(n, BUFFERS['abcpq'.index(m)])
            to(kind + left if left else next_pc, one)

    # -- waiting in lane 0
    if pc == 'w_lock':
        to('w_top', lambda n: lock(n, who, 'l0'))
    elif pc == 'w_top':
        if is_done(s, who):
            def end(n):
                if 'hand_over' in parts:
                    hand_over(n)
                store(n, who, 'l0', '')
            to('w_out', end)
        elif s['owner']:
            def follow(n):
                n['followers'] += who
                store(n, who, 'l0', '')
            to('follow', follow)
        else:
            def own(n):
                store(n, who, 'parked', 0)
                n['owner'] = who
            to('o_poll', own)
    elif pc == 'follow':
        if who in s['called']:
            def awake(n):
                if not lock(n, who, 'l0'):
                    return False
                n['called'] = n['called'].replace(who, '')
            to('w_top', awake)
    elif pc == 'o_poll':
        to('o_try', lambda n: poll_zero(n, who))
    elif pc == 'o_try':
        if read(s, who, 'pollers') or s['l1']:
            to('o_told')
        else:
            to('o_in', lambda n: lock(n, who, 'l1'))
    elif pc == 'o_in':
        def other(n):
            poll_one(n, who, parts)
            leave_other(n, who)
            store(n, who, 'l1', '')
        to('o_told', other)
    elif pc == 'o_told':
        def told(n):
            call_finished(n, who)
        to('o_done', told)

        def run(n):
            call_finished(n, who)
            store(n, who, 'l0', '')
        if who == 'a':
            to('function', run)
    elif pc == 'function':
        if not s['d1'] or s['pc_b'] == 'out':
            to('o_done', lambda n: lock(n, who, 'l0'))
    elif pc == 'o_done':
        if is_done(s, who):
            def leave(n):
                n['owner'] = ''
            to('w_top', leave)
        elif read(s, who, 'pollers'):
            def park(n):
                n['owner'] = ''
                store(n, who, 'parked', 1)
                if 'park_barrier' in parts:
                    drain(n, who)  # its own first
            to('private_' + THREADS.replace(who, '') if 'park_barrier' in parts else 'k_look', park)
        else:
            def publish(n):
                store(n, who, 'word', 1)
                if 'sleeper_barrier' in parts:
                    drain(n, who)  # its own first
            to('global_' + 'abcpq'.replace(who, '')
               if 'sleeper_barrier' in parts and order == 'barrier'
               else 's_look', publish)
    elif pc.startswith('private_'):
        barrier('k_look', pc[len('private_'):], 'private_')
    elif pc == 'k_look':
        if read(s, who, 'pollers') or 'park_again' not in parts:
            def follow_too(n):
                n['followers'] += who
                store(n, who, 'l0', '')
            to('follow', follow_too)
        else:
            to('w_top')
    elif pc.startswith('global_'):
        barrier('s_look', pc[len('global_'):], 'global_')
    elif pc == 's_look':
        def look(n):
            call_finished(n, who)
        if is_done(s, who) or s['m0']:
            to('s_off', look)
        elif 'last_look_lanes' not in parts:
            to('s_sleep', look)
        else:
            to('s_lock', look)
    elif pc == 's_lock':
        if 'last_look_lock' not in parts:
            to('s_off' if s['m1'] or s['deferred'] else 's_sleep')
        elif s['l1']:
            to('s_off')
        else:
            to('s_one', lambda n: lock(n, who, 'l1'))
    elif pc == 's_one':
        looked = State(s.t)
        look_at_waits(looked, who)
        is_ready = s['m1'] or looked['deferred']

        def unlock_one(n):
            look_at_waits(n, who)
            leave_other(n, who)
            store(n, who, 'l1', '')
        to('s_off' if is_ready else 's_sleep', unlock_one)
    elif pc == 's_off':
        to('o_poll', lambda n: store(n, who, 'word', 0))
    elif pc == 's_sleep':
        def sleep(n):
            n['asleep'] = 1
            store(n, who, 'l0', '')
        to('s_futex', sleep)
    elif pc == 's_futex':
        def enter(n):
            drain(n, who)
            if n['word']:
                n['futex'] = who
        to('s_wait', enter)
    elif pc == 's_wait':
        if s['futex'] != who:
            def woken(n):
                if not lock(n, who, 'l0'):
                    return False
                n['asleep'] = 0
                store(n, who, 'word', 0)
            to('o_poll', woken)
    elif pc == 'w_out':
        to('out' if who == 'a' else 'b_back')

    # -- running what lane 1 defers, without a lock
    elif pc in ('run', 'run_out'):
        to('run1' if pc == 'run' else 'run1_out',
           lambda n: lock(n, who, 'l0'))
    elif pc in ('run1', 'run1_out'):
        to('run2' if pc == 'run1' else 'run2_out',
           lambda n: lock(n, who, 'l1'))
    elif pc in ('run2', 'run2_out'):
        def run_noted(n):
            if 'run_looks' in parts:
                look_at_waits(n, who)
            if n['deferred'] or 'run_all' in parts:
                n['deferred'] = n['noted'] = 0
            store(n, who, 'l1', '')
            call_finished(n, who)
            if read(n, who, 'parked') and not read(n, who, 'pollers'):
                hand_over(n)
            if n['asleep'] and 'run_rouses' in parts:
                rouse(n, who)
            store(n, who, 'l0', '')
        to('w_lock' if pc == 'run2' else 'out', run_noted)

    # -- polling lane 1
    elif who == 'b' and pc == 'start':
        def begin(n):
            if not lock(n, who, 'l1'):
                return False
            store(n, who, 'pollers', 1)
        to('b_top', begin)
    elif pc == 'b_top':
        def stop(n):
            store(n, who, 'pollers', 0)

        def give_up(n):
            store(n, who, 'pollers', 0)
            n['joined'] = 1
            n['deferred'] = 0
            store(n, who, 'l1', '')

        def pause(n):
            n['deferred'] = 0
            store(n, who, 'l1', '')
        if read(s, who, 'd1'):
            to('b_stop', stop)
        else:
            if s['m1']:
                to('b_top', lambda n: poll_one(n, who, parts))
            to('run' if s['deferred'] else 'b_join', give_up)
            if not s['deferred']:
                to('b_visit', pause)
    elif pc == 'b_stop':
        if read(s, who, 'parked') and 'last_calls' in parts:
            def tell(n):
                n['deferred'] = 1
            to('b_let_go', tell)
        else:
            to('b_let_go')
    elif pc == 'b_let_go':
        def let_go(n):
            n['deferred'] = 0
            store(n, who, 'l1', '')
        to('run_out' if s['deferred'] else 'out', let_go)
    elif pc == 'b_join':
        to('w_lock')
    elif pc == 'b_back':
        def back(n):
            if not lock(n, who, 'l1'):
                return False
            n['joined'] = 0
        to('b_let_go', back)
    elif pc == 'b_visit':
        if s['l0']:
            to('b_relock')
        else:
            to('b_first', lambda n: lock(n, who, 'l0'))
    elif pc == 'b_first':
        def first(n):
            if not n['owner']:
                poll_zero(n, who)
                call_finished(n, who)
            store(n, who, 'l0', '')
        to('b_relock', first)
    elif pc == 'b_relock':
        to('b_top', lambda n: lock(n, who, 'l1'))

    # -- work in lane 1 by who does not wait
    elif who == 'c' and pc == 'start':
        to('c_work', lambda n: lock(n, who, 'l1'))
    elif pc == 'c_work':
        def make(n, notes):
            store(n, who, 'm1', 1)
            n['noted'] = n['deferred'] = notes
        to('c_look', lambda n: make(n, 0))
        to('c_look', lambda n: make(n, 1), 'c_note')
        if s['pc_p1'] == 'out' and not s['m1']:
            to('b_let_go', lambda n: complete(n, who, parts), 'c_complete')
    elif pc == 'c_look':
        def look_at_word(n):
            if 'rouse_after_work' in parts:
                rouse(n, who)
        to('b_let_go', look_at_word)

    # -- another thread that waits in lane 0
    elif who == 'a' and pc == 'start':
        to('w_lock')
    return out


def producer(s, who, order):
    pc = s['pc_' + who]
    n = State(s.t)
    if pc == 'start':
        store(n, who, 'm' + who[1], 1)
        n['pc_' + who] = 'look'
        return [('publish', n.frozen())]
    if pc == 'look':
        if order == 'fence':
            drain(n, who)
        rouse(n, who)
        n['pc_' + who] = 'out'
        return [('look', n.frozen())]
    return []


def successors(t, parts, order):
    s = State(t)
    out = []
    for who in BUFFERS:
        if s['f_' + who]:
            n = State(t)
            drain_one(n, who)
            out.append((who + ' drains', n.frozen()))
        steps = (step(s, who, parts, order) if who in THREADS
                 else producer(s, who, order))
        out += [(who + ' ' + words, n) for words, n in steps]
    return out


def is_end(t):
    s = State(t)
    return (all(s['pc_' + who] == 'out' for who in BUFFERS)
            and not s['noted'])


def check_state(t):
    s = State(t)
    polls = [w for w in THREADS if s['pc_' + w].startswith('o_')]
    if len(polls) > 1:
        return 'two owners poll'
    if polls and (s['owner'] != polls[0] or s['l0'] != polls[0]):
        return 'who polls is no owner, or has no lock'
    return None


def trace(parent, t):
    words = []
    while parent[t]:
        t, step_words = parent[t]
        words.append(step_words)
    return ' / '.join(reversed(words))


def explore(config, parts, order):
    """NULL and the number of states, or why and a trace."""
    start = initial(config)
    parent = {start: None}
    before = {}
    ends = []
    todo = deque([start])
    while todo:
        t = todo.popleft()
        why = check_state(t)
        after = [(w, n) for w, n in successors(t, parts, order) if n != t]
        if not after and not is_end(t):
            why = ('nobody has a step left, but not everybody is out, or '
                   'something that was noted is not run')
        if why:
            return why, trace(parent, t)
        if not after:
            ends.append(t)
        for words, n in after:
            before.setdefault(n, []).append(t)
            if n not in parent:
                parent[n] = (t, words)
                todo.append(n)
    good = set(ends)
    todo = deque(ends)
    while todo:
        for t in before.get(todo.popleft(), []):
            if t not in good:
                good.add(t)
                todo.append(t)
    for t in parent:
        if t not in good:
            return 'a state with no way to the end', trace(parent, t)
    return None, len(parent)


ORDERS = ['barrier', 'fence']
CONFIGS = [
    ('a', 'p0'),
    ('b', 'p1'),
    ('a', 'b', 'p0', 'p1'),
    ('a', 'b', 'c', 'p0'),
    ('b', 'c'),
]


def main():
    if '--parts' in sys.argv[1:]:
        bad = 0
        for part in PARTS:
            left = frozenset(PARTS) - {part}
            found = None
            for config, order in product(CONFIGS, ORDERS):
                found, words = explore(config, left, order)
                if found:
                    break
            print(f'without {part}: {found or "nothing breaks"}')
            if '-v' in sys.argv and found:
                print('   ', words)
            bad += not found
        return 1 if bad else 0
    for config, order in product(CONFIGS, ORDERS):
        why, what = explore(config, frozenset(PARTS), order)
        if why:
            print(f'{"+".join(config)}, {order}: {why}\n{what}')
            return 1
        print(f'{"+".join(config)}, {order}: {what} states')
    return 0


if __name__ == '__main__':
    sys.exit(main())
