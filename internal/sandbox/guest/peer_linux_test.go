package guest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox/tail"
	"mcpagents/internal/sandbox/wire"
)

// TestMain makes the test binary its own sandbox-init, whole or with one guard
// off for a negative control.
func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "sandbox-init":
		os.Exit(Main(os.Args[2:]))
	case "sandbox-init-dumpable": // as Main, without harden
		if err := serve(os.Stdin, os.Stdout, os.Args[3], ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "sandbox-init-no-reaper": // as Main, but orphans go elsewhere
		if err := serve(&unreaped{r: os.Stdin}, os.Stdout, os.Args[3], ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	default:
		os.Exit(m.Run())
	}
}

// unreaped gives the subreaper's role up before the first frame is read.
type unreaped struct {
	r    io.Reader
	once sync.Once
}

func (u *unreaped) Read(p []byte) (int, error) {
	u.once.Do(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	return u.r.Read(p)
}

// peer is a front end that speaks raw frames to an init process.
type peer struct {
	t    *testing.T
	cmd  *exec.Cmd
	home string
	conn *wire.Conn
	in   *os.File
	out  *os.File
	diag tail.Buffer
}

// patience bounds every wait of these tests, on a slow machine too.
const patience = 20 * time.Second

func startInit(t *testing.T, role string, attr *syscall.SysProcAttr) *peer {
	home, err := os.MkdirTemp("/tmp", "sandbox-init-home-") // another user must get there
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	p := &peer{t: t, home: home}
	childIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, childOut, err := os.Pipe()
	require.NoError(t, err)
	p.cmd = exec.Command("/proc/self/exe", role, "-home", p.home)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.diag
	p.cmd.ExtraFiles = []*os.File{os.Stderr} // left open by whoever starts init, here on purpose
	p.cmd.Env = []string{"HOME=" + p.home, "SECRET_OF_INIT=hidden-from-commands",
		"GORACE=atexit_sleep_ms=0"} // the race detector's runtime sleeps for a second at the end
	p.cmd.SysProcAttr = attr
	if attr != nil && attr.Credential != nil {
		require.NoError(t, os.Chown(p.home, int(attr.Credential.Uid), int(attr.Credential.Gid)))
		require.NoError(t, childOut.Chown(int(attr.Credential.Uid), int(attr.Credential.Gid))) // as an engine does
	}
	require.NoError(t, p.cmd.Start())
	_, _ = childIn.Close(), childOut.Close()
	p.in, p.out = in, out
	p.conn = wire.NewConn(out, in)
	t.Cleanup(p.end)
	return p
}

// end closes the lifeline, waits for init, and checks that nothing is left.
func (p *peer) end() {
	_, _ = p.in.Close(), p.out.Close()
	_ = p.conn.Close()
	if p.cmd.ProcessState == nil {
		timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait()
		require.True(p.t, timer.Stop(), "init did not end with its lifeline")
	}
	require.NotContains(p.t, p.diag.String(), "DATA RACE")
}

func (p *peer) send(t wire.Type, stream uint8, payload []byte) {
	require.NoError(p.t, p.conn.Send(wire.Frame{Type: t, Stream: stream, Payload: payload}))
}

func (p *peer) json(t wire.Type, v any) { p.send(t, 0, wire.Marshal(v)) }

// next returns the next frame but pongs.
func (p *peer) next() (wire.Frame, error) {
	require.NoError(p.t, p.out.SetReadDeadline(time.Now().Add(patience)))
	for {
		f, err := p.conn.Next()
		if err != nil || f.Type != wire.TypePong {
			return f, err
		}
	}
}

func (p *peer) want(t wire.Type) wire.Frame {
	p.t.Helper()
	f, err := p.next()
	require.NoError(p.t, err, p.diag.String())
	require.Equal(p.t, t, f.Type, "%s", f.Payload)
	return f
}

func hello() wire.Hello {
	return wire.Hello{Magic: wire.Magic, Min: 1, Max: 1, Sandbox: "test", Grace: 300 * time.Millisecond, Lifeline: time.Minute}
}

func (p *peer) greet(h wire.Hello) wire.Welcome {
	p.t.Helper()
	p.json(wire.TypeHello, h)
	var w wire.Welcome
	require.NoError(p.t, wire.Unmarshal(p.want(wire.TypeHello), &w))
	return w
}

func bash(script string) wire.Spawn {
	return wire.Spawn{Argv: []string{"bash", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/"}
}

// spawn starts a command and waits for the answer.
func (p *peer) spawn(sp wire.Spawn) int {
	p.t.Helper()
	p.json(wire.TypeSpawn, sp)
	var s wire.Started
	require.NoError(p.t, wire.Unmarshal(p.want(wire.TypeStarted), &s))
	return s.PID
}

// finish takes the command's output and exit. No frame may come between the
// exit and the answer to a collect.
func (p *peer) finish() (out, errOut string, exit wire.Exit) {
	p.t.Helper()
	var text [3]strings.Builder
	for {
		f, err := p.next()
		require.NoError(p.t, err, p.diag.String())
		switch f.Type {
		case wire.TypeData:
			text[f.Stream].Write(f.Payload)
			p.send(wire.TypeCredit, f.Stream, wire.AppendUint32(uint32(len(f.Payload))))
		case wire.TypeExit:
			require.NoError(p.t, wire.Unmarshal(f, &exit))
			return text[1].String(), text[2].String(), exit
		case wire.TypeEOF, wire.TypeCredit, wire.TypeStarted, wire.TypeCollected:
		default:
			require.Fail(p.t, "unexpected frame", "%s: %s", f.Type, f.Payload)
		}
	}
}

func (p *peer) run(sp wire.Spawn) (out, errOut string, exit wire.Exit) {
	p.t.Helper()
	p.json(wire.TypeSpawn, sp)
	return p.finish()
}

// wait returns init's exit status.
func (p *peer) wait() int {
	p.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	require.True(p.t, timer.Stop(), "init does not end")
	return p.cmd.ProcessState.ExitCode()
}
