package oneshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"mcpagents/internal/sandbox/wire"
)

// MaxOutput is the most that a blocking command may write to each of its
// streams, in bytes.
const MaxOutput = 10 << 20

// ErrTimeout is the cause of the end of a turn whose time is over.
var ErrTimeout = errors.New("the time is over")

// Output is what a command left that ran to its end.
type Output struct {
	Stdout, Stderr []byte
	Exit           wire.Exit
	// TimedOut and Overflow ("stdout" or "stderr") say why the command was
	// killed. The sandbox is gone in any case.
	TimedOut bool
	Overflow string
	// AskedLogin says that the command was killed because it asked for a login.
	AskedLogin bool
	// Closed is why the sandbox could not be verified gone, nil if it is.
	Closed error
}

// Run runs a command, with an input unless it takes none, to its end and destroys its sandbox. The
// context's cause ErrTimeout ends it with an Output, any other cause with that
// cause as the error. Other errors are those of Start, or a *sandbox.LostError.
func (l *Launcher) Run(ctx context.Context, c Command, input string) (Output, error) {
	t, err := l.Start(ctx, c)
	if err != nil {
		if errors.Is(err, ErrTimeout) {
			return Output{TimedOut: true}, nil
		}
		return Output{}, err
	}
	out, err := t.run(ctx, input, c)
	if out.Closed != nil {
		l.Log.Warn("a sandbox could not be removed", "error", out.Closed)
	}
	return out, err
}

// run waits for the end of the command and closes the turn.
func (t *Turn) run(ctx context.Context, input string, c Command) (out Output, err error) {
	var workers sync.WaitGroup
	if !c.NoInput {
		workers.Go(func() {
			_, _ = io.WriteString(t.Stdin(), input) // a command may well not read it
			_ = t.Stdin().Close()
		})
	}
	overflow := make(chan string, 2)
	prompt := watchLogin(c.LoginPatience)
	defer prompt.stop()
	workers.Go(func() { out.Stdout = capture(prompt.of(t.Stdout()), "stdout", overflow) })
	workers.Go(func() { out.Stderr = capture(prompt.of(t.Stderr()), "stderr", overflow) })
	select {
	case <-t.Done():
	case out.Overflow = <-overflow:
	case <-prompt.asked:
		out.AskedLogin = true
	case <-ctx.Done():
		out.TimedOut = errors.Is(context.Cause(ctx), ErrTimeout)
		if !out.TimedOut {
			err = context.Cause(ctx)
		}
	}
	if t.ended() {
		var lost error
		out.Exit, lost = t.Wait(context.Background())
		err = errors.Join(err, lost)
		workers.Wait()
		out.Closed = t.Close(ctx)
	} else {
		out.Closed = t.Close(ctx) // ends the readers too
		workers.Wait()
	}
	if len(overflow) > 0 && out.Overflow == "" {
		out.Overflow = <-overflow
	}
	return out, err
}

// ended reports whether the command is over, and kills it if not: everything at
// once, because nothing of a turn that is given up has a say. What it wrote
// before gets a moment to arrive.
func (t *Turn) ended() bool {
	if isDone(t.Done()) {
		return true
	}
	t.Kill()
	timer := time.NewTimer(killTime)
	defer timer.Stop()
	select {
	case <-t.Done():
		return true
	case <-timer.C:
		return false
	}
}

// killTime is what the end of a killed command may take.
const killTime = 2 * time.Second

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// capture reads a stream up to MaxOutput and says when there is more.
func capture(r io.Reader, name string, overflow chan<- string) []byte {
	var b bytes.Buffer
	n, _ := io.Copy(&b, io.LimitReader(r, MaxOutput+1))
	if n > MaxOutput {
		overflow <- name
		_, _ = io.Copy(io.Discard, r)
	}
	return b.Bytes()
}

// Text is the command's answer: its stdout, or its stderr if there is none,
// without the blanks at its end.
func (o Output) Text() string {
	text := o.Stdout
	if len(text) == 0 {
		text = o.Stderr
	}
	return strings.TrimRight(strings.ToValidUTF8(string(text), "\uFFFD"), " \t\r\n\v\f")
}

// Failure says how the command failed, empty if it ended well. The texts are
// relied on. budget is the time that it had.
func (o Output) Failure(command string, budget time.Duration) string {
	var text string
	switch {
	case o.Overflow != "":
		return fmt.Sprintf("%s %s maxBuffer exceeded", command, o.Overflow)
	case o.AskedLogin:
		text = command + " failed: it asks for a login, which nobody can give here: log in with it on this machine, or set a key, and call again"
	case o.TimedOut:
		text = fmt.Sprintf("%s failed: killed by SIGKILL\nIts time of %d ms was over; ", command, budget.Milliseconds())
		if o.Closed == nil {
			text += "its sandbox was destroyed and nothing of it runs any more."
		} else {
			text += "its sandbox could not be verified gone."
		}
		if len(o.Stdout)+len(o.Stderr) == 0 {
			text += " It had printed nothing."
		}
	case o.Exit.Reason == wire.ReasonMemory:
		text = command + " failed: killed by SIGKILL\nThe sandbox reached its memory limit: raise it with --memory."
	case o.Exit.Signal != 0:
		text = fmt.Sprintf("%s failed: killed by %s", command, signalName(o.Exit.Signal))
	case o.Exit.Code != 0:
		text = fmt.Sprintf("%s failed: exit code %d", command, o.Exit.Code)
	default:
		return ""
	}
	if stderr := strings.TrimSpace(strings.ToValidUTF8(string(o.Stderr), "\uFFFD")); stderr != "" {
		text += "\nstderr:\n" + stderr
	}
	return text
}

// signalName is the name by which users know a signal of Linux, which is where
// sandboxes run.
func signalName(n int) string {
	names := map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
		9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS"}
	if name, ok := names[n]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// Cut shortens a text to a number of code points and returns how many it had.
func Cut(text string, limit int) (short string, chars int) {
	chars = utf8.RuneCountInString(text)
	if chars <= limit {
		return text, chars
	}
	n := 0
	for i := range text {
		if n == limit {
			return text[:i], chars
		}
		n++
	}
	return text, chars
}
