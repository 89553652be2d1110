package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox/wire"
)

// unprivileged makes init an ordinary user without capabilities, as in a
// container: root would see everything.
func unprivileged() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// A command of the same user can read neither init's environment nor its
// memory, and cannot write to its stream. Without the guard it can do all
// three.
func TestInitCannotBeRead(t *testing.T) {
	const probe = `
p=$PPID
tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -q SECRET_OF_INIT && echo environ
head -c 0 "/proc/$p/mem" 2>/dev/null && echo mem
: 2>/dev/null >"/proc/$p/fd/1" && echo stream
echo done`
	for role, want := range map[string]string{
		"sandbox-init":          "done\n",
		"sandbox-init-dumpable": "environ\nmem\nstream\ndone\n",
	} {
		t.Run(role, func(t *testing.T) {
			p := startInit(t, role, unprivileged())
			p.greet(hello())
			out, errOut, _ := p.run(bash(probe))
			require.Equal(t, want, out, errOut)
		})
	}
}

// A daemon that forked twice and made a session of its own dies with the
// command. Without the subreaper it lives on.
func TestDaemonsDie(t *testing.T) {
	for role, survives := range map[string]bool{"sandbox-init": false, "sandbox-init-no-reaper": true} {
		t.Run(role, func(t *testing.T) {
			p := startInit(t, role, nil)
			p.greet(hello())
			file := filepath.Join(p.home, "pid")
			// The daemon's parents end before the command does, so that nothing but the reaper ties it to init.
			p.run(bash("(setsid bash -c 'trap \"\" TERM HUP; echo $$ >" + file + ".new; mv " + file + ".new " + file +
				"; exec sleep 60' >/dev/null 2>&1 </dev/null &) ; until [ -s " + file + " ]; do sleep 0.01; done; sleep 0.05"))
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			require.NoError(t, err)
			daemon, err := ReadProcess(pid)
			require.Equal(t, survives, err == nil && daemon.State != 'Z')
			if survives {
				require.NoError(t, daemon.Signal(unix.SIGKILL))
			}
		})
	}
}

// Children that fork on and on, in sessions of their own and deaf to TERM, are
// all gone when the exit arrives. The bomb is bounded: 200 generations, 2 s.
func TestForkBombEnds(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	mark := fmt.Sprintf("bomb-%d", time.Now().UnixNano())
	script := filepath.Join(p.home, "bomb")
	require.NoError(t, os.WriteFile(script, []byte(`#!/bin/bash
# `+mark+`
trap '' TERM HUP INT
end=$(($2 + 2))
for ((n = $1; n < 200 && $(date +%s) < end; n++)); do
  (setsid bash "$0" $((n + 60)) "$2" "$3" >/dev/null 2>&1 </dev/null &)
done
exec -a "$3" sleep 30
`), 0o700))
	_, _, exit := p.run(bash(script + " 0 $(date +%s) " + mark + " & sleep 0.4; exit 6"))
	require.Equal(t, 6, exit.Code)
	require.Empty(t, withArgument(t, mark))
}

// withArgument lists the live processes with a mark on their command line.
func withArgument(t *testing.T, mark string) (found []string) {
	for _, p := range Processes() {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)); err == nil && p.State != 'Z' && strings.Contains(string(b), mark) {
			found = append(found, fmt.Sprint(p.PID, " ", strings.ReplaceAll(string(b), "\x00", " ")))
		}
	}
	return found
}

// Stopped processes end too: with TERM where that is enough, else with KILL.
func TestStoppedChildrenEnd(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	_, _, exit := p.run(bash("sleep 61 & sleep 62 & kill -STOP %1 %2; exit 2"))
	require.Equal(t, 2, exit.Code)

	h := hello()
	h.Grace = time.Minute
	p = startInit(t, "sandbox-init", nil)
	p.greet(h)
	pid := p.spawn(bash("kill -STOP $$"))
	require.Eventually(t, func() bool { s, _ := ReadProcess(pid); return s.State == 'T' }, patience, 5*time.Millisecond)
	begin := time.Now()
	p.send(wire.TypeBye, 0, nil)
	_, _, exit = p.finish()
	require.Equal(t, 15, exit.Signal)
	require.Less(t, time.Since(begin), 10*time.Second, "a stopped process is continued to take its TERM")
}

// A command signals init with everything that can be caught.
func TestInitSurvivesSignals(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	for sig := 1; sig <= 64; sig++ {
		switch sig {
		case 9, 19, 32, 33, 34: // nobody catches the first two and Go none of these; the kernel spares a PID 1 all five
			continue
		}
		_, _, exit := p.run(bash(fmt.Sprintf("kill -%d $PPID && sleep 0.01 && exit 5", sig)))
		require.Equal(t, 5, exit.Code)
	}
	_, _, exit := p.run(bash("exit 6"))
	require.Equal(t, 6, exit.Code)
}

// Orphans in thousands leave no zombie, and the command's own status is not
// lost among them.
func TestOrphansAreReaped(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	const orphans = 1_000
	sp := bash(fmt.Sprintf(`for ((i = 0; i < %d; i++)); do (: &) ; done; exit 9`, orphans/10))
	for range 10 {
		_, _, exit := p.run(sp)
		require.Equal(t, 9, exit.Code)
		for _, q := range Processes() {
			require.NotEqual(t, p.cmd.Process.Pid, q.Parent, "a child of init is left: %+v", q)
		}
	}
}

// The command sees no signal blocked, ignored or caught, whatever init does
// for itself, nothing open but 0 to 2, and a worse chance when memory ends.
func TestCommandStartsClean(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	out, _, _ := p.run(wire.Spawn{Argv: []string{"/bin/cat", "/proc/self/status"}, Dir: "/"})
	none := strings.Repeat("0", 16)
	require.Contains(t, out, "\nSigBlk:\t"+none+"\nSigIgn:\t"+none+"\nSigCgt:\t"+none+"\n")

	out, _, _ = p.run(wire.Spawn{Argv: []string{"/bin/ls", "/proc/self/fd"}, Dir: "/"})
	require.Equal(t, "0\n1\n2\n3\n", out, "3 is the directory itself")

	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.cmd.Process.Pid))
	require.NoError(t, err)
	out, _, _ = p.run(wire.Spawn{Argv: []string{"/bin/cat", "/proc/self/oom_score_adj"}, Dir: "/"})
	mine, err := strconv.Atoi(strings.TrimSpace(string(own)))
	require.NoError(t, err)
	its, err := strconv.Atoi(strings.TrimSpace(out))
	require.NoError(t, err)
	require.Equal(t, min(mine+500, 1000), its)

	sp := bash("env; cat; pwd")
	sp.Env = append(sp.Env, "A=b")
	sp.Dir = p.home
	out, _, _ = p.run(sp)
	require.NotContains(t, out, "SECRET_OF_INIT")
	require.Contains(t, out, "A=b\n")
	require.Contains(t, out, fmt.Sprintf("%s=test:%d:", Marker, p.cmd.Process.Pid))
	require.True(t, strings.HasSuffix(out, p.home+"\n"), "stdin was at its end: %s", out)
}

// A signal for the group reaches a grandchild whose parent does not pass it on.
func TestSignalReachesTheGroup(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	p.spawn(bash(`trap : USR1; bash -c 'trap "echo got; exit" USR1; echo ready; while :; do sleep 0.02; done' & wait; wait; exit 3`))
	require.Equal(t, "ready\n", string(p.want(wire.TypeData).Payload))
	p.json(wire.TypeSignal, wire.Signal{Number: int(unix.SIGUSR1)})
	out, _, exit := p.finish()
	require.Equal(t, "got\n", out)
	require.Equal(t, 3, exit.Code)
}

// Away from PID 1, everything below init is signalled one by one: kill(-1)
// would take every process of the user on the machine.
func TestLocalInitSignalsOnlyItsOwn(t *testing.T) {
	outside := startInit(t, "sandbox-init", nil) // a process that is not below
	outside.greet(hello())
	stranger := outside.spawn(bash("sleep 60"))
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	p.spawn(bash("sleep 60"))
	p.json(wire.TypeSignal, wire.Signal{Number: 9, All: true})
	_, _, exit := p.finish()
	require.Equal(t, 9, exit.Signal)
	s, err := ReadProcess(stranger)
	require.NoError(t, err)
	require.NotEqual(t, byte('Z'), s.State)
	require.False(t, newProcesses().pidOne)
}

func TestReadProcess(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "a) R 1 (b")
	b, err := os.ReadFile("/bin/sleep")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bin, b, 0o755))
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	pid := p.spawn(wire.Spawn{Argv: []string{bin, "60"}, Dir: "/"})
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	require.NoError(t, err)
	require.Equal(t, "a) R 1 (b\n", string(comm))
	got, err := ReadProcess(pid)
	require.NoError(t, err)
	require.Equal(t, []int{pid, p.cmd.Process.Pid}, []int{got.PID, got.Parent})
	require.Contains(t, "SR", string(got.State))
	self, err := ReadProcess(os.Getpid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Start, self.Start)

	stale := got
	stale.Start--
	require.Equal(t, unix.ESRCH, stale.Signal(unix.SIGKILL), "another process that has the same pid")
	require.NoError(t, got.Signal(unix.SIGKILL))
	_, _, exit := p.finish()
	require.Equal(t, 9, exit.Signal)
	_, err = ReadProcess(pid)
	require.Error(t, err)
}

// A process whose first thread has ended looks like a zombie and lives on in
// the others: it is killed as well.
func TestProcessWithoutItsFirstThread(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs python3 to end one thread of a process")
	}
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	file := filepath.Join(p.home, "pid")
	script := `
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
time.sleep(0.1)
open('` + file + `.new', 'w').write(str(os.getpid()))
os.rename('` + file + `.new', '` + file + `')
ctypes.CDLL(None).pthread_exit(None)
`
	p.spawn(bash("(setsid /usr/bin/python3 -c \"" + script + "\" >/dev/null 2>&1 </dev/null &); sleep 60"))
	var pid int
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(b))
		s, err := ReadProcess(pid)
		return pid > 0 && err == nil && s.State == 'Z'
	}, patience, 5*time.Millisecond, "the control: it looks like a zombie")
	p.send(wire.TypeBye, 0, nil)
	p.finish()
	p.wait()
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err == nil {
		_ = unix.Kill(pid, unix.SIGKILL) // ours: the failed test leaves nothing
	}
	require.ErrorIs(t, err, os.ErrNotExist)
}
