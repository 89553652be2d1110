package acceptance

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortLifeline is how long a sandbox waits for a front end that is silent.
const shortLifeline = 2 * time.Second

var shortLived = []string{"--lifeline_timeout", fmt.Sprint(shortLifeline.Seconds())}

// frontEndFaults are those of the front end itself: it is killed, stopped,
// asked to leave.
var frontEndFaults = []fault{
	{name: "front end gets SIGKILL", prompt: stallingCall, do: signalled(syscall.SIGKILL), status: []int{137}},
	{name: "front end gets SIGKILL at ten points of its start", points: 10},
	{name: "front end gets SIGTERM", prompt: stallingCall, do: signalled(syscall.SIGTERM), status: []int{143}},
	{name: "front end gets SIGINT", prompt: stallingCall, do: signalled(syscall.SIGINT), status: []int{130}},
	{name: "front end gets SIGHUP", prompt: stallingCall, do: signalled(syscall.SIGHUP), status: []int{129}},
	{name: "front end gets SIGTERM and SIGINT at once", prompt: stallingCall, do: func(c *client) {
		signalled(syscall.SIGTERM)(c)
		signalled(syscall.SIGINT)(c)
	}, status: []int{143, 130}},
	// Its sandbox ends by itself, and once it runs again it says so and leaves.
	{name: "front end gets SIGSTOP, later SIGCONT", prompt: stallingCall, args: shortLived, do: signalled(syscall.SIGSTOP), longer: shortLifeline,
		after: signalled(syscall.SIGCONT), status: []int{1}, told: `sandbox.*(lost|ended)`},
	{name: "front end gets SIGSTOP, later SIGKILL", prompt: stallingCall, args: shortLived, do: signalled(syscall.SIGSTOP), longer: shortLifeline,
		after: signalled(syscall.SIGKILL), status: []int{137}},
}

// kills kills front ends at f.points points between their start and their first
// frame. What a kill at such a point leaves is an unstarted container or a home
// that nobody holds: the next start removes it, a container only when it is
// older than two minutes.
func (f fault) kills(t *testing.T, r *row, runtime, image string) {
	s := newSetting(t, runtime, image)
	s.args = append([]string{"--stop_grace", fmt.Sprint(grace.Seconds())}, f.args...)
	untilFirst := s.firstFrame(t)
	for i := range f.points {
		r.rounds++
		c := s.start(t)
		_, _ = c.in.Write([]byte(initializeMessage))
		select {
		case <-time.After(untilFirst * time.Duration(i) / time.Duration(f.points)):
		case <-c.exited:
			require.FailNow(t, "the front end ended by itself")
		}
		c.begin()
		signalled(syscall.SIGKILL)(c)
		require.Equal(t, 137, c.exit()) // a busy machine may be late to reap it
		pid := c.cmd.Process.Pid
		took, l := s.settled(t, pid, c.since)
		if l.count() > 0 { // what cannot end by itself
			l = s.nextStart(t, pid, l)
		}
		if len(l.containers) > 0 {
			f.later(r, s, pid)
			l.containers = nil
		}
		r.record(took, l, "")
		require.Zero(t, l.count(), l.String())
		require.Less(t, took, s.limit(grace), "time to clean")
	}
}

const initializeMessage = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"acceptance","version":"1"}}}` + "\n"

// firstFrame starts a front end, lets it leave after its first frame, and
// returns how long that took to come.
func (s *setting) firstFrame(t *testing.T) time.Duration {
	c := s.start(t)
	begin := time.Now()
	c.initialize()
	took := time.Since(begin)
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	return took
}

// nextStart starts a front end again, which sweeps what an earlier one with that
// pid left, and returns what is then still left of that one.
func (s *setting) nextStart(t *testing.T, pid int, before left) left {
	t.Helper()
	c := s.start(t)
	c.initialize()
	s.swept(t, pid, func(l left) left { return l.common(before) })
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	return s.swept(t, pid, func(l left) left { return l })
}

// swept waits until nothing is left, or only containers that are too young to be
// swept.
func (s *setting) swept(t *testing.T, pid int, part func(left) left) left {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(lookInterval) {
		l := part(s.look(t, pid))
		took, young := time.Since(begin), len(l.processes)+len(l.copies) == 0
		if l.count() == 0 || young && took > settling || took > s.limit(settling) {
			return l
		}
	}
}

// settling is how long what still moves by itself is waited for.
const settling = grace + 2*time.Second

// settled waits until nothing is left, or only what cannot end by itself: a
// container that was never started, a home that no process holds.
func (s *setting) settled(t *testing.T, pid int, since time.Time) (time.Duration, left) {
	t.Helper()
	for {
		l := s.look(t, pid)
		idle := len(l.processes) == 0
		for _, c := range l.containers {
			idle = idle && strings.HasSuffix(c, " created")
		}
		took := time.Since(since)
		switch {
		case l.count() == 0, took > s.limit(settling):
			return took, l
		case idle && took > settling:
			return 0, l // nothing runs, and nothing will change
		}
		time.Sleep(lookInterval) // the machine does not tell when something went
	}
}

// later looks at the end of the test whether gc removed a container that was
// too young before.
func (f fault) later(r *row, s *setting, pid int) {
	born := time.Now()
	r.late = append(r.late, func(t *testing.T) {
		t.Logf("a container was made and never started: waiting until it is old enough for gc")
		time.Sleep(time.Until(born.Add(2*time.Minute + 2*time.Second)))
		output(t, built.agents, "gc")
		l := s.look(t, pid)
		r.left = r.left.plus(l)
		require.Zero(t, l.count(), l.String())
	})
}
