package acceptance

import (
	"strings"
	"syscall"
	"testing"
)

// lost is what is told of a call whose sandbox went away.
const lost = "^-32001 .*sandbox.*(lost|ended)"

// endless is a call that only KILL ends.
var endless = script(ignoreTerm, up, stall)

// engineFaults are those of the engine and of the way to it. What ends by its
// lifeline may take that long.
var engineFaults = []fault{
	ofEngine("engine gets SIGTERM", func(t *testing.T, e *ownEngine) { e.end(syscall.SIGTERM) }),
	ofEngine("engine gets SIGKILL", func(t *testing.T, e *ownEngine) { e.end(syscall.SIGKILL) }),
	ofEngine("engine gets SIGKILL and is started again", func(t *testing.T, e *ownEngine) {
		e.end(syscall.SIGKILL)
		e.up(t)
	}),
	ofEngine("engine is restarted", func(t *testing.T, e *ownEngine) {
		e.end(syscall.SIGTERM)
		e.up(t)
	}),
	ofLink("link to the engine goes half open", false),
	ofLink("link to the engine goes half open for all connections", true),
}

// ofEngine is a fault of an engine of the test's own.
func ofEngine(name string, do func(*testing.T, *ownEngine)) fault {
	return fault{name: name, on: "docker", ownEngine: true, prompt: endless, longer: shortLifeline, args: append([]string{"--network", "none"}, shortLived...),
		setup: func(t *testing.T, s *setting) {
			e := engineOfOurOwn(t)
			s.image, s.engine, s.lookAt = engineImage, e.address(), e.address()
		},
		do:     func(c *client) { do(c.t, own) },
		status: []int{1}, told: lost,
		// What was in the engine when it went down shows when it is up again.
		verify: func(t *testing.T, s *setting, c *client) {
			own.up(t)
			s.requireNothing(t, c.cmd.Process.Pid)
		}}
}

// ofLink is a fault of the link to the machine's engine.
func ofLink(name string, all bool) fault {
	var link *halfOpen
	return fault{name: name, on: "docker", prompt: endless, longer: shortLifeline, args: shortLived,
		setup: func(t *testing.T, s *setting) {
			path, ok := strings.CutPrefix(engineClient(t, "").DaemonHost(), "unix://")
			if !ok {
				t.Skip("the engine is not behind a socket of this machine")
			}
			link = newHalfOpen(t, path, all)
			s.engine = link.address()
		},
		do:     func(*client) { link.stop() },
		status: []int{1}, told: lost}
}
