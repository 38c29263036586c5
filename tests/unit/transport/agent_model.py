#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Model test of the agent's protocol (doc/agent.md).

  agent_model.py          a reduced space of states, for every build
  agent_model.py --full   all configurations, about ten minutes
  agent_model.py --parts  leave out one part at a time: what breaks; fails when
                          nothing does

Explicit states, every interleaving. Threads: one application, its agent, and
producers of other processes ('o' ordinary, 'u' urgent). Memory is x86-TSO:
each thread has a FIFO store buffer; a locked instruction drains the own one.
membarrier drains all threads (global) or those of the process (private), one
thread after the other, in any order, while everybody else goes on ('split');
so it is weaker than a barrier at one instant.  A futex may return for no
reason (signals). Producers publish without end; a ring holds ROOM messages.
One poll takes at most one message.  Consumption itself is not buffered: the
stores in the lane precede the releasing store in the same FIFO.  In some
configurations devices keep messages that the application posts (lane.h, L6):
a poll, by whom ever, lets them leave.  In some it visits a lane that it has
lent (L7): the state word stays as it is.  In some it has the agent go off duty
at any time with nothing owed (agent.h, A8): urgent producers that find it so
look as ordinary ones do.

Abstraction of the application: in MPI it may at any time poll, go to sleep
(prepare, last look, futex) or leave with owed = 0 or 1; so every call is in.
An agent that meets a visit waits until it is over; in truth it pauses and looks
again.

Properties
  P1  application and agent are never both in the lane
  P2  urgent work published while the application is away with owed > 0 is
      consumed though the application never comes back
  P3  no message is lost for an application that sleeps in MPI
  P4  owed == 0: nobody wakes the agent.  (a) in runs that never owe, never;
      (b) everybody at rest, owed == 0, application out: none of the messages
      that follow wakes the agent until the application calls again
  P5  no deadlock, and the agent comes to rest (burns nothing) when no new
      message comes, also while the application stays in MPI
  P6  a message that is kept leaves though the application never comes back
How P2, P3, P5, P6 are checked: take away the free choices (calls, leaving, going
to sleep, new messages, idle returns of a futex); then every thread must run
out of steps (the graph has no cycle), and where nobody has a step left
nothing may be lost. So it is inevitable, not only possible.

Not in the model: descriptors, the lane with a lock, weaker memory orders.
"""
import sys
import time
from collections import deque

AWAKE, ASLEEP, AWAY_OWED = range(3)             # the state word
WORD = ['AWAKE', 'ASLEEP', 'AWAY_OWED']
URGENT, A_ASLEEP = 1, 2                         # bits of bell
BUF = 3                                         # entries of a store buffer

# What the protocol rests on; --parts takes one away at a time.
PARTS = {
    'reenter': 'leaving: URGENT seen after the exchange -> enter again '
               '(AWAKE, wait for agent_in == 0) before polling',
    'poll_dry': 'leaving: poll until a poll finds nothing, not once',
    'rouse_all': 'every urgent producer rouses a sleeping owner, not only '
                 'the first',
    'agent_looks': 'agent: ASLEEP set, URGENT seen -> look at state once more',
    'clear_inside': 'agent clears URGENT inside the lane only, before polling',
    'restore': 'agent that leaves the lane before a dry poll sets URGENT again',
    'cas_rouse': 'rousing is a compare-exchange from ASLEEP',
    'sleeper_barrier': 'the sleeper\'s membarrier (W3)',
    'agent_barrier': 'the agent\'s membarrier after agent_in = 1',
    'agent_sees_kept': 'agent: ASLEEP set, a message kept -> look at state '
                       'once more',
    'tell_kept': 'leaving with a message kept: wake an agent that sleeps',
    'agent_sees_visit': 'agent_in = 1, a visit under way -> withdraw',
    'visit_waits': 'a visit waits for agent_in == 0',
    'duty_barrier': 'the membarrier after the agent was put on duty',
    'duty_urgent': 'who puts the agent on duty sets URGENT, so leaving polls',
    'wake_clears': 'who wakes the agent clears its ASLEEP bit first',
}


class Config:
    def __init__(self, producers='ou', parts=None, fence=False,
                 owed_values=(0, 1), room=None, split=True, hand_over=False,
                 keeps=False, visits=False, duty=False):
        self.kinds = producers
        self.duty = duty            # the agent goes off it and comes back
        self.visits = visits        # the application does, while away
        self.keeps = keeps          # the application posts what is kept
        self.parts = frozenset(PARTS if parts is None else parts)
        self.hand_over = hand_over  # leaving may stop before a poll is dry
        self.fence = fence          # W5: producers fence, sleeper does too
        self.owed_values = owed_values
        self.room = room or [1 if k == 'o' else 2 for k in producers]
        self.split = split

    def name(self):
        return 'producers %s, order %s%s%s%s%s%s' % (
            '+'.join(self.kinds), 'FENCE' if self.fence else 'BARRIER',
            ', bounded leaving' if self.hand_over else '',
            ', messages kept' if self.keeps else '',
            ', visits' if self.visits else '',
            ', off duty' if self.duty else '',
            ', never owed' if self.owed_values == (0,) else '')


# State: (word, bell, agent_in, owed, keeps,
#         app pc, app local, app buffer, agent pc, agent local, agent buffer,
#         visited, has_agent, then per producer: pc, local, buffered messages,
#         messages in memory)
W, B, AI, OW, KP, AP, AL, AB, GP, GL, GB, V, HA, P0 = range(14)
# The application's buffer holds values of the word, and these of `visited` and
# has_agent:
VISIT, END_VISIT, OFF = 3, 4, 5
APP_INSIDE = {'in', 's1', 's2', 's3', 'd0', 'd1', 'd2', 'l0', 'l1', 'l2', 'l6',
              'l6x', 'l6y', 'h1', 'v2'}
AGENT_INSIDE = {'g7', 'g8', 'g8b', 'g10'}


def successors(s, c):
    """All steps: (who, words, is_free_choice, next state)."""
    out = []
    m = c.parts
    n = len(c.kinds)

    def put(who, words, *pairs, free=False):
        t = list(s)
        for i in range(0, len(pairs), 2):
            t[pairs[i]] = pairs[i + 1]
        out.append((who, words, free, tuple(t)))

    pend = [s[P0 + 4 * i + 3] for i in range(n)]

    # -- store buffers drain on their own
    if s[AB] and s[AB][0] == OFF:
        put('app.buffer', 'has_agent <- 0', HA, 0, AB, s[AB][1:])
    elif s[AB] and s[AB][0] >= VISIT:
        put('app.buffer', 'visited <- %d' % (s[AB][0] == VISIT),
            V, int(s[AB][0] == VISIT), AB, s[AB][1:])
    elif s[AB]:
        put('app.buffer', 'state <- ' + WORD[s[AB][0]],
            W, s[AB][0], AB, s[AB][1:])
    if s[GB]:
        put('agent.buffer', 'agent_in <- %d' % s[GB][0],
            AI, s[GB][0], GB, s[GB][1:])
    for i in range(n):
        b = P0 + 4 * i
        if s[b + 2]:
            put('%s%d.buffer' % (c.kinds[i], i), 'message visible',
                b + 2, s[b + 2] - 1, b + 3, s[b + 3] + 1)

    def drained_app():              # pairs that drain the application
        words = [x for x in s[AB] if x < VISIT]
        visits = [x for x in s[AB] if x in (VISIT, END_VISIT)]
        return [W, words[-1] if words else s[W],
                V, int(visits[-1] == VISIT) if visits else s[V],
                HA, 0 if OFF in s[AB] else s[HA], AB, ()]

    def is_on_duty():               # as the application knows it
        return s[HA] and OFF not in s[AB]

    def drained_agent():
        return [AI, s[GB][-1], GB, ()] if s[GB] else []

    def barrier(who, pc, nxt, loc, others, keep=None):
        """membarrier: loc = set of threads still to be drained."""
        todo = others if s[loc] is None else s[loc]
        if not c.split:
            todo = frozenset(todo)
            pairs = [pc, nxt, loc, keep]
            for x in todo:
                pairs += drain(x)
            put(who, 'membarrier', *pairs)
            return
        if not todo:
            put(who, 'membarrier returns', pc, nxt, loc, keep)
        for x in todo:
            put(who, 'membarrier reaches ' + str(x), loc, todo - {x},
                *drain(x))

    def drain(x):
        if x == 'app':
            return drained_app()
        if x == 'agent':
            return drained_agent()
        b = P0 + 4 * x
        return [b + 2, 0, b + 3, s[b + 3] + s[b + 2]]

    def take(who, pc, nxt, **kw):
        for i in range(n):
            if pend[i]:
                put(who, 'polls, takes a message of %s%d' % (c.kinds[i], i),
                    P0 + 4 * i + 3, pend[i] - 1, pc, nxt, KP, 0, **kw)

    # -- the application
    a = s[AP]
    roomy = len(s[AB]) < BUF
    if a == 'out':
        if roomy:
            put('app', 'calls MPI: stores AWAKE', AP, 'e1',
                AB, s[AB] + (AWAKE,), free=True)
        if roomy and c.visits and not s[AB]:
            put('app', 'visits the lane', AP, 'v1', AB, (VISIT,), free=True)
    elif a == 'v1':
        if not s[AI] or 'visit_waits' not in m:
            put('app', 'loads agent_in = %d: visits' % s[AI], AP, 'v2')
    elif a == 'v2':
        if roomy:
            put('app', 'ends its visit', AP, 'out', AB, s[AB] + (END_VISIT,))
    elif a == 'outk':
        put('app', 'calls MPI: the lane is its own', AP, 'in', free=True)
    elif a == 'e1':
        if not s[AI]:
            put('app', 'loads agent_in = 0: in the lane', AP, 'in')
    elif a == 'in':
        take('app', AP, 'in')
        if s[KP]:
            put('app', 'polls, what was kept leaves', KP, 0)
        else:
            put('app', 'wants to sleep', AP, 's1', free=True)
        if c.keeps and not s[KP]:
            put('app', 'posts, a device keeps it; wants to leave', AP, 'l0',
                OW, 1, KP, 1, AB, (), *drained_app(), free=True)
        if 0 in c.owed_values and not s[KP]:
            put('app', 'leaves, nothing owed: stays AWAKE', AP, 'outk', OW, 0,
                free=True)
        if 1 in c.owed_values:
            put('app', 'wants to leave, something owed',
                AP, 'l0' if is_on_duty() else 'd0', OW, 1, free=True)
        if c.duty and is_on_duty() and roomy and not s[KP]:
            put('app', 'nothing owed for long: stores has_agent = 0', OW, 0,
                AB, s[AB] + (OFF,), free=True)
    elif a == 'd0':                 # before leaving
        put('app', 'puts the agent on duty', AP,
            'd1' if 'duty_barrier' in m else 'd2', AB, (), *drained_app(),
            HA, 1)
    elif a == 'd1':
        barrier('app', AP, 'd2', AL, frozenset(['agent'] + list(range(n))))
    elif a == 'd2':
        put('app', 'on duty: sets URGENT', AP, 'l0',
            B, s[B] | URGENT if 'duty_urgent' in m else s[B], AB, (),
            *drained_app())
    elif a == 's1':
        put('app', 'exchanges ASLEEP in', AP, 's3' if c.fence or
            'sleeper_barrier' not in m else 's2', *drained_app(), W, ASLEEP)
    elif a == 's2':
        barrier('app', AP, 's3', AL, frozenset(['agent'] + list(range(n))))
    elif a == 's3':
        if any(pend):
            if roomy:
                put('app', 'last look finds work: stores AWAKE', AP, 'in',
                    AB, s[AB] + (AWAKE,))
        else:
            put('app', 'last look finds nothing', AP, 's4')
    elif a == 's4':
        if s[W] == ASLEEP:
            put('app', 'futex_wait: sleeps', AP, 'zz')
        else:
            put('app', 'futex_wait: word has changed', AP, 'sw')
    elif a == 'zz':
        put('app', 'futex_wait returns for no reason', AP, 'sw', free=True)
    elif a == 'sw':
        if roomy:
            put('app', 'stores AWAKE, goes on in MPI', AP, 'in',
                AB, s[AB] + (AWAKE,))
    elif a == 'l0':                 # a first look, before the exchange
        if s[B] & URGENT:
            put('app', 'leaving: sees URGENT', AP, 'l2')
        else:
            put('app', 'leaving: URGENT not set', AP, 'l1')
    elif a == 'l1':
        put('app', 'leaving: exchanges AWAY_OWED in', AP, 'l3',
            *drained_app(), W, AWAY_OWED)
    elif a == 'l3':
        if not s[B] & URGENT:
            wakes = s[KP] and s[B] & A_ASLEEP and 'tell_kept' in m
            put('app', 'looks at bell: not URGENT; ' +
                ('the agent shall see to what is kept' if wakes else
                 'computes'), AP, 'h2' if wakes else 'out')
        else:
            put('app', 'looks at bell: URGENT', AP,
                'l4' if 'reenter' in m else 'l6x')
    elif a == 'l4':
        if roomy:
            put('app', 'enters again: stores AWAKE', AP, 'l5',
                AB, s[AB] + (AWAKE,))
    elif a == 'l5':
        if not s[AI]:
            put('app', 'loads agent_in = 0: in the lane', AP,
                'l2')
    elif a == 'l2':
        put('app', 'clears URGENT', AP, 'l6', B, s[B] & ~URGENT, AB, (),
            *drained_app())
    elif a in ('l6', 'l6x'):        # l6x: as first written, AWAY all along
        dry = not any(pend)
        nxt = 'out' if a == 'l6x' else a if 'poll_dry' in m else 'l6y'
        take('app', AP, nxt)
        if dry and a == 'l6x':
            put('app', 'polls once more, finds nothing; computes', AP, 'out',
                KP, 0)
        elif dry:
            put('app', 'polls, finds nothing', AP, 'l6y', KP, 0)
        elif c.hand_over and s[OW]:
            put('app', 'enough turns: sets URGENT again', AP, 'h1',
                B, s[B] | URGENT, AB, (), *drained_app())
    elif a == 'h1':                 # the bounded form of leaving
        put('app', 'leaving: exchanges %s in' % 'AWAY_OWED', AP, 'h2',
            *drained_app(), W, AWAY_OWED)
    elif a == 'h2':
        put('app', 'clears ASLEEP in bell', AP,
            'h3' if s[B] & A_ASLEEP else 'out', B, s[B] & ~A_ASLEEP)
    elif a == 'h3':
        put('app', 'futex_wake(agent); computes', AP, 'out',
            GP, 'g3' if s[GP] == 'gz' else s[GP])
    elif a == 'l6y':
        if s[OW]:
            put('app', 'still owes', AP, 'l1')
        if 0 in c.owed_values:
            put('app', 'nothing owed any more: stays AWAKE', AP, 'outk', OW, 0)

    # -- the agent
    g = s[GP]
    may = s[W] == AWAY_OWED
    if g == 'g0':
        put('agent', 'sets ASLEEP in bell', GP, 'g1', GL, s[B] & URGENT,
            B, s[B] | A_ASLEEP, *drained_agent())
    elif g == 'g1':
        kept = s[KP] and 'agent_sees_kept' in m
        if (s[GL] and 'agent_looks' in m) or kept:
            put('agent', 'saw URGENT or a message kept', GP, 'g1b')
        else:
            put('agent', 'may sleep', GP, 'g2')
    elif g == 'g1b':
        put('agent', 'looks at state: ' + WORD[s[W]],
            GP, 'g3' if may else 'g2')
    elif g == 'g2':
        if s[B] == (s[GL] | A_ASLEEP):
            put('agent', 'futex_wait: sleeps', GP, 'gz', GL, None)
        else:
            put('agent', 'futex_wait: bell has changed', GP, 'g3', GL, None)
    elif g == 'gz':
        put('agent', 'futex_wait returns for no reason', GP, 'g3', free=True)
    elif g == 'g3':
        bits = A_ASLEEP if 'clear_inside' in m else A_ASLEEP | URGENT
        put('agent', 'clears %s in bell' % ('ASLEEP' if bits == A_ASLEEP
                                            else 'ASLEEP and URGENT'),
            GP, 'g3a', B, s[B] & ~bits, GL, None, *drained_agent())
    elif g == 'g3a':
        put('agent', 'looks at state: ' + WORD[s[W]], GP, 'g4' if may else 'g0')
    elif g == 'g4':
        if len(s[GB]) < BUF:
            put('agent', 'stores agent_in = 1', GP, 'g5', GB, s[GB] + (1,))
    elif g == 'g5':
        if s[GB]:
            pass                    # the caller's own barrier comes first
        elif 'agent_barrier' not in m:
            put('agent', 'full fence only', GP, 'g6')
        else:
            barrier('agent', GP, 'g6', GL, frozenset(['app']))
    elif g == 'g6':
        if may and s[V] and 'agent_sees_visit' in m:
            put('agent', 'sees a visit: withdraws', GP, 'gv')
        elif may:
            put('agent', 'sees %s: in the lane' % WORD[s[W]],
                GP, 'g7' if 'clear_inside' in m else 'g8', GL, 0)
        else:
            put('agent', 'sees %s: withdraws' % WORD[s[W]], GP, 'g9')
    elif g == 'gv':
        if len(s[GB]) < BUF:
            put('agent', 'stores agent_in = 0', GP, 'gw', GB, s[GB] + (0,),
                GL, None)
    elif g == 'gw':
        if not s[V]:
            put('agent', 'the visit is over', GP, 'g0')
    elif g == 'g7':
        put('agent', 'clears URGENT', GP, 'g8', B, s[B] & ~URGENT,
            *drained_agent())
    elif g == 'g8':                 # local: has taken something this time
        for i in range(n):
            if pend[i]:
                put('agent', 'polls, takes a message of %s%d' %
                    (c.kinds[i], i), P0 + 4 * i + 3, pend[i] - 1, GL, 1,
                    KP, 0)
        if not any(pend):
            put('agent', 'polls, finds nothing', GP, 'g10', KP, 0,
                GL, 1 if s[KP] else s[GL])
        if s[GL] or not may:
            put('agent', 'enough turns, or the application is back', GP,
                'g8b' if 'restore' in m else 'g10')
    elif g == 'g8b':
        put('agent', 'sets URGENT again', GP, 'g10', B, s[B] | URGENT,
            *drained_agent())
    elif g == 'g10':
        if s[OW]:
            put('agent', 'still owed', GP, 'g9')
            if 0 in c.owed_values and s[GL]:
                put('agent', 'work done has made owed 0', OW, 0)
        else:
            put('agent', 'owed == 0: CAS AWAY_OWED -> AWAKE', GP, 'g9',
                W, AWAKE if s[W] == AWAY_OWED else s[W], *drained_agent())
    elif g == 'g9':
        if len(s[GB]) < BUF:
            put('agent', 'stores agent_in = 0', GP, 'g0', GB, s[GB] + (0,),
                GL, None)

    # -- the producers
    for i in range(n):
        k = c.kinds[i]
        who = '%s%d' % (k, i)
        b = P0 + 4 * i
        p, loc = s[b], s[b + 1]
        own = drain(i)
        if p == 'p0':
            if s[b + 2] + s[b + 3] < c.room[i]:
                put(who, 'publishes a message', b, 'p1', b + 2, s[b + 2] + 1,
                    free=True)
        elif p == 'p1' and k == 'o':
            if c.fence:
                put(who, 'fences', b, 'p2', *own)
            else:
                put(who, 'compiler barrier', b, 'p2')
        elif p == 'p1' and not s[HA]:
            if c.fence:
                put(who, 'fences, no agent on duty', b, 'p2', b + 1,
                    (True, False), *own)
            else:
                put(who, 'no agent on duty', b, 'p2', b + 1, (True, False))
        elif p == 'p1':
            first = not s[B] & URGENT
            asleep = bool(s[B] & A_ASLEEP)
            put(who, 'fetch-or URGENT, bell was %s%s' % (
                '' if first else 'URGENT ', 'ASLEEP' if asleep else '0'
                if first else ''), b, 'p2', b + 1, (first, asleep),
                B, s[B] | URGENT, *own)
        elif p == 'p2':
            if s[W] == ASLEEP and (k == 'o' or loc[0] or 'rouse_all' in m):
                put(who, 'sees the owner asleep', b, 'p3', b + 1, None)
            elif k == 'u' and s[W] == AWAY_OWED and loc[0] and loc[1]:
                put(who, 'sees %s, agent asleep' % WORD[s[W]], b, 'p4',
                    b + 1, None)
            else:
                put(who, 'sees %s: done' % WORD[s[W]], b, 'p0', b + 1, None)
        elif p == 'p3':
            if s[W] == ASLEEP:
                put(who, 'ASLEEP -> AWAKE', b, 'p5', W, AWAKE, *own)
            elif 'cas_rouse' in m:
                put(who, 'CAS fails: done', b, 'p0', *own)
            else:
                put(who, 'exchanges AWAKE in (was %s)' % WORD[s[W]], b, 'p0',
                    W, AWAKE, *own)
        elif p == 'p5':
            put(who, 'futex_wake(owner)', b, 'p0',
                AP, 'sw' if s[AP] == 'zz' else s[AP])
        elif p == 'p4':
            if 'wake_clears' not in m:
                put(who, 'goes on to wake the agent', b, 'p6')
            elif s[B] & A_ASLEEP:
                put(who, 'clears ASLEEP in bell', b, 'p6',
                    B, s[B] & ~A_ASLEEP, *own)
            else:
                put(who, 'agent not asleep any more: done', b, 'p0', *own)
        elif p == 'p6':
            put(who, 'futex_wake(agent)', b, 'p0',
                GP, 'g3' if s[GP] == 'gz' else s[GP])
    return out


def initial(c):
    return (AWAKE, 0, 0, 0, 0, 'in', None, (), 'g0', None, (),
            0, 1) + \
        ('p0', None, 0, 0) * len(c.kinds)


def pending(s, c, kinds):
    return any(s[P0 + 4 * i + 2] + s[P0 + 4 * i + 3]
               for i in range(len(c.kinds)) if c.kinds[i] in kinds)


def check(c, stop_early=False):
    """Returns (number of states, steps, {property: (words, trace)})."""
    start = initial(c)
    number = {start: 0}
    states = [start]
    parent = [(-1, '', '')]
    forced = [None]                 # edges that are no free choice
    bad = {}
    steps = 0
    i = 0

    def trace(j):
        lines = []
        while j > 0:
            k, who, words = parent[j]
            lines.append((who, words, states[j]))
            j = k
        return lines[::-1]

    def fail(prop, words, j):
        if prop not in bad:
            bad[prop] = (words, trace(j))

    while i < len(states):
        s = states[i]
        if s[AP] in APP_INSIDE and s[GP] in AGENT_INSIDE:
            fail('P1', 'both in the lane', i)
        edges = []
        for who, words, free, t in successors(s, c):
            steps += 1
            j = number.get(t)
            if j is None:
                j = number[t] = len(states)
                states.append(t)
                parent.append((i, who, words))
                forced.append(None)
            if not free:
                edges.append(j)
        forced[i] = edges
        if not edges:
            if s[AP] == 'out' and s[OW] and pending(s, c, 'u'):
                fail('P2', 'application away with something owed, urgent '
                     'message unconsumed, nobody has a step left', i)
            if s[AP] == 'out' and s[KP]:
                fail('P6', 'application away, a message is kept, nobody has a '
                     'step left', i)
            if s[AP] == 'zz' and pending(s, c, 'ou'):
                fail('P3', 'application asleep in MPI, message unconsumed, '
                     'nobody has a step left', i)
            if s[AP] not in ('out', 'outk', 'in', 'zz') or s[GP] != 'gz':
                fail('P5', 'stuck', i)
        if c.owed_values == (0,) and any(
                s[P0 + 4 * k] == 'p6' for k in range(len(c.kinds))):
            fail('P4', 'nothing was ever owed, and the agent is woken', i)
        if stop_early and bad:
            return len(states), steps, bad
        i += 1

    # no cycle of forced steps (Kahn)
    degree = [0] * len(states)
    for edges in forced:
        for j in edges:
            degree[j] += 1
    todo = [j for j in range(len(states)) if not degree[j]]
    left = len(states)
    while todo:
        left -= 1
        for j in forced[todo.pop()]:
            degree[j] -= 1
            if not degree[j]:
                todo.append(j)
    if left:
        fail('P5', 'endless without news (trace: on or behind the cycle)', next(
            j for j in range(len(states)) if degree[j]))

    # P4 (b): at rest, owed == 0, application out; it stays out
    if 1 in c.owed_values:
        seen = {}
        queue = deque()
        for j, s in enumerate(states):
            if (s[AP] in ('out', 'outk') and not s[OW] and not s[AB] and
                    s[GP] == 'gz' and
                    all(s[P0 + 4 * k] == 'p0' for k in range(len(c.kinds)))):
                seen[j] = None
                queue.append(j)
        while queue and 'P4' not in bad:
            j = queue.popleft()
            for who, words, free, t in successors(states[j], c):
                if who == 'app' or 'no reason' in words:
                    continue
                k = number[t]
                if k in seen:
                    continue
                seen[k] = (j, who, words)
                if words.startswith('futex_wake(agent)'):
                    tail = []
                    while seen[k]:
                        tail.append(seen[k][1:] + (states[k],))
                        k = seen[k][0]
                    bad['P4'] = ('everybody at rest, nothing owed; then the '
                                 'agent is woken', trace(k) + tail[::-1])
                    break
                queue.append(k)
    return len(states), steps, bad


def show(prop, found, c):
    words, trace = found
    print('  %s FAILS: %s; %d steps:' % (prop, words, len(trace)))
    for n, (who, what, s) in enumerate(trace):
        print('   %3d  %-12s %-48s state=%-9s bell=%s%s in=%d owed=%d kept=%d msgs=%s'
              % (n + 1, who, what, WORD[s[W]], 'U' if s[B] & URGENT else '-',
                 'A' if s[B] & A_ASLEEP else '-', s[AI], s[OW], s[KP],
                 ','.join(str(s[P0 + 4 * i + 3])
                          for i in range(len(c.kinds)))))


def run(c, label):
    t = time.time()
    n, steps, bad = check(c)
    print('%s: %d states, %d steps, %.1f s: %s' % (
        label, n, steps, time.time() - t,
        'holds' if not bad else 'FAILS ' + ', '.join(sorted(bad))),
        flush=True)
    for prop in sorted(bad):
        show(prop, bad[prop], c)
    return bad


def without(part):
    """The shortest counterexample of each property that fails."""
    found = {}
    for owed, kinds, more in (((0, 1), 'u', {}),
                              ((0, 1), 'u', {'keeps': True}),
                              ((0, 1), 'u', {'visits': True}),
                              ((0, 1), 'u', {'duty': True}),
                              ((0, 1), 'ou', {}), ((0,), 'u', {})):
        if not found:
            c = Config(kinds, set(PARTS) - {part}, owed_values=owed,
                       split=False, **more)
            found = check(c, stop_early=True)[2]
    return found


def check_parts():
    is_idle = False
    for part in PARTS:
        found = without(part)
        is_idle |= not found
        print('without %-15s %s' % (part, ', '.join(
            '%s fails in %d steps' % (p, len(f[1]))
            for p, f in sorted(found.items())) or 'holds: not needed'),
            flush=True)
    return is_idle


def main():
    if '--parts' in sys.argv[1:]:
        return check_parts()
    plan = [Config('u'), Config('u', owed_values=(0,)),
            Config('u', hand_over=True), Config('u', fence=True),
            Config('u', keeps=True), Config('u', visits=True),
            Config('u', duty=True)]
    if '--full' in sys.argv[1:]:
        plan += [Config('ou', room=[1, 1], split=False), Config('ou'),
                 Config('ou', owed_values=(0,)),
                 Config('ou', room=[1, 1], keeps=True),
                 Config('u', hand_over=True, keeps=True),
                 Config('u', hand_over=True, visits=True),
                 Config('ou', room=[1, 1], visits=True),
                 Config('ou', fence=True, room=[1, 1]),
                 Config('ou', room=[1, 1], duty=True),
                 Config('u', hand_over=True, duty=True),
                 Config('u', fence=True, duty=True),
                 Config('uu', split=False, room=[1, 1]),
                 Config('ou', hand_over=True, room=[1, 1])]
    failed = False
    for c in plan:
        failed |= bool(run(c, c.name()))
    return failed


if __name__ == '__main__':
    sys.exit(main())
